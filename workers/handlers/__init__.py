"""Handlers that come with Switchyard. Importing this registers them."""

from workers.handlers import forward, log, webhook

__all__ = ["forward", "log", "webhook"]
