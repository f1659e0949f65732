"""`log`: one line for each message."""

import logging
from dataclasses import dataclass
from typing import Final, Literal

from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.errors import ConfigurationError
from queuecore.messages import Record

logger = logging.getLogger("switchyard.handlers.log")

MAX_PREVIEW_BYTES: Final = 2_000


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What a queue may say about its lines.

    level          of each line
    preview_bytes  how much of the payload to show; 0: nothing, as payloads may be nobody's business
    """

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    preview_bytes: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.preview_bytes <= MAX_PREVIEW_BYTES:
            raise ConfigurationError(f"preview_bytes is {self.preview_bytes}; use 0 to {MAX_PREVIEW_BYTES}")


@handler("log", options=LogOptions)
class LogMessages:
    def __init__(self, options: LogOptions) -> None:
        self._level = logging.getLevelNamesMapping()[options.level]
        self._preview_bytes = options.preview_bytes

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        if not logger.isEnabledFor(self._level):
            return
        where = f"{record.topic}[{record.partition}]@{record.offset}"
        # Quoted, as producers wrote it: nothing in there begins a line of its own.
        tenant, preview = repr(context.tenant_id), self._preview(record.data)
        logger.log(self._level, "%s: %s, %d bytes, tenant %s%s", context.queue, where, record.size, tenant, preview)

    def _preview(self, data: bytes) -> str:
        if not self._preview_bytes:
            return ""
        cut = "…" if len(data) > self._preview_bytes else ""
        return f": {data[: self._preview_bytes].decode(errors='backslashreplace')!r}{cut}"
