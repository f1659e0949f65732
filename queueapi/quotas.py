"""What a tenant may use, as a value: its own word on each point, else its profile's."""

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class Quotas:
    """None: no limit.

    messages_per_s  published in a second
    bytes_per_s     of payloads published in a second
    burst_s         after a quiet time, so many seconds' worth may come at once
    partitions      of all its own queues together
    stored_bytes    of the messages in its own queues
    """

    messages_per_s: int | None = None
    bytes_per_s: int | None = None
    burst_s: int = 5
    partitions: int | None = None
    stored_bytes: int | None = None

    @property
    def messages_at_once(self) -> float:
        return float((self.messages_per_s or 0) * self.burst_s)

    @property
    def bytes_at_once(self) -> float:
        """No message larger than this is ever let through."""
        return float((self.bytes_per_s or 0) * self.burst_s)


QUOTAS: Final = tuple(field.name for field in fields(Quotas))
