"""What was read becomes requests; what is none, or is wanted by nobody any more, is put aside."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from queuecore.clock import Clock
from queuecore.consuming.tracker import OffsetTracker
from queuecore.messages import EXPIRE_TS, REQUEST_ID, RESPONSE_TOPIC, Record, decode_millis
from queuecore.requests.request import Outcome, Request
from queuecore.requests.topics import RequestTopics
from queuecore.topics import ProviderPartition, TopicPartitionInfo

logger = logging.getLogger(__name__)

_ID_BYTES: Final = 16
_TIME_BYTES: Final = 8
# Instances come and go, each with a topic of its own; what they are called is looked up again then.
_KNOWN_TOPICS: Final = 10_000


class Taken(NamedTuple):
    """What one poll gave: requests to be handled, and records that are done, with why."""

    requests: list[Request]
    done: list[tuple[OffsetTracker, int, Outcome]]


class Intake:
    """For the thread that reads."""

    def __init__(self, topics: RequestTopics, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock
        self._addresses: dict[bytes, TopicPartitionInfo | None] = {}

    def take(self, records: Sequence[Record], trackers: Mapping[ProviderPartition, OffsetTracker]) -> Taken:
        taken = Taken([], [])
        now, now_ms, clock = self._clock.monotonic(), self._clock.now_ms(), self._clock
        for record in records:
            tracker = trackers[ProviderPartition(record.topic, record.partition)]
            tracker.give((record.offset,))
            headers = record.headers
            request_id, expires = headers.get(REQUEST_ID, b""), headers.get(EXPIRE_TS, b"")
            address = self._address(headers.get(RESPONSE_TOPIC, b""))
            if address is None or len(request_id) != _ID_BYTES or len(expires) != _TIME_BYTES:
                _complain(record)
                taken.done.append((tracker, record.offset, Outcome.MALFORMED))
            elif (left_ms := decode_millis(expires) - now_ms) <= 0:
                taken.done.append((tracker, record.offset, Outcome.EXPIRED))
            else:
                deadline = now + left_ms / 1000
                taken.requests.append(Request(record, request_id, address, deadline, tracker, clock))
        return taken

    def _address(self, header: bytes) -> TopicPartitionInfo | None:
        """Where the answer goes; None where it must not go."""
        try:
            return self._addresses[header]
        except KeyError:
            name = header.decode(errors="replace")
            if len(self._addresses) >= _KNOWN_TOPICS:
                self._addresses.clear()
            address = TopicPartitionInfo(name) if self._topics.is_response_topic(name) else None
            self._addresses[header] = address
            return address


def _complain(record: Record) -> None:
    logger.warning(
        "%s[%d]@%d is no request, and passed over: it needs the headers %s of %d bytes, %s of %d and, naming a topic "
        "for answers of this kind, %s",
        *(record.topic, record.partition, record.offset),
        *(REQUEST_ID, _ID_BYTES, EXPIRE_TS, _TIME_BYTES, RESPONSE_TOPIC),
    )
