"""Requests that this installation sends to others' web servers: where they may go, and how they are signed."""
