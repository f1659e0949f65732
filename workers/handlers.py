"""Handlers that come with Switchyard."""

import logging

from queuecore.consuming.handlers import HandlerContext, handler
from queuecore.messages import Record

logger = logging.getLogger("switchyard.handlers.log")


@handler("log")
def log_message(record: Record, context: HandlerContext) -> None:
    """Write one line for each message."""
    logger.info("%s offset %d: %d bytes, tenant %s", record.topic, record.offset, record.size, context.tenant_id)


def register_all() -> None:
    """Importing a module registers its handlers; this one names those that ship."""
    from workers.demo import handler as _demo  # noqa: F401
