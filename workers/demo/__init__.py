"""The demo: a fleet of sensors whose messages mostly succeed."""
