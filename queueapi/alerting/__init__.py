"""Alerts: which rule holds for what, when it fires and resolves, and how people are told of it."""
