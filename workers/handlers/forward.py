"""`forward`: each message goes on to another queue, with its key, and as part of its transaction."""

from dataclasses import dataclass
from typing import Final

from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.errors import ConfigurationError, GivenUp
from queuecore.messages import TENANT_ID, Headers, Record

# How often a message has been forwarded, in decimal digits.
FORWARDED: Final = "__queue.forwarded"
# Queues that forward to each other in a circle are noticed.
MAX_FORWARDS: Final = 16

_OWN_HEADERS: Final = "__queue."


@dataclass(frozen=True, slots=True)
class ForwardOptions:
    """Where messages go on to.

    queue         its name, as the forwarding queue's tenant sees it; it has to be there first
    keep_headers  whether they go on too; the tenant's always does, those of replays and dead letters never
    """

    queue: str
    keep_headers: bool = True

    def __post_init__(self) -> None:
        if not self.queue:
            raise ConfigurationError("the option 'queue' is empty; name the queue that messages go on to")

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.queue,)

    def check_queue(self, queue: str) -> None:
        if queue.lower() == self.queue.lower():
            raise ConfigurationError(f"queue {queue} would forward to itself, without end; name another queue")


@handler("forward", options=ForwardOptions)
class ForwardMessages:
    def __init__(self, options: ForwardOptions) -> None:
        self._options = options

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        self._options.check_queue(context.queue)
        context.send(self._options.queue, record.key, record.data, self._headers(record))

    def _headers(self, record: Record) -> Headers:
        kept = {
            name: value
            for name, value in record.headers.items()
            if name == TENANT_ID or (self._options.keep_headers and not name.startswith(_OWN_HEADERS))
        }
        return {**kept, FORWARDED: str(_forwards(record) + 1).encode()}


def _forwards(record: Record) -> int:
    """How often it has been forwarded. GivenUp where that is too often."""
    said = record.headers.get(FORWARDED, b"0")
    count = int(said) if said.isdigit() and len(said) < 9 else 0
    if count >= MAX_FORWARDS:
        raise GivenUp(
            f"the message has been forwarded {count} times, so queues forward to each other in a circle; "
            "change the handler of one of them"
        )
    return count
