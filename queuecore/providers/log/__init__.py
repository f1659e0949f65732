"""`log`: a durable segment log for one machine and many processes."""

from queuecore.providers.log.provider import LogProvider

__all__ = ["LogProvider"]
