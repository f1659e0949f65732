"""What was read becomes requests; what is none, or is wanted by nobody any more, is put aside."""

import logging
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from queuecore.clock import Clock
from queuecore.consuming.tracker import OffsetTracker
from queuecore.messages import EXPIRE_TS, REQUEST_ID, RESPONSE_TOPIC, Record, decode_millis, source_of
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
        self._clock = clock
        self._addresses = _Addresses(topics)

    def take(self, records: Sequence[Record], trackers: Mapping[ProviderPartition, OffsetTracker]) -> Taken:
        requests, done = taken = Taken([], [])
        clock, addresses = self._clock, self._addresses
        now, now_ms = clock.monotonic(), clock.now_ms()
        for source, records_of_source in groupby(records, source_of):
            tracker = trackers[ProviderPartition(source.topic, source.partition)]
            together = list(records_of_source)
            tracker.give([record.offset for record in together])
            for record in together:
                headers = record.headers
                request_id, expires = headers.get(REQUEST_ID, b""), headers.get(EXPIRE_TS, b"")
                address = addresses[headers.get(RESPONSE_TOPIC, b"")]
                if address is None or len(request_id) != _ID_BYTES or len(expires) != _TIME_BYTES:
                    _complain(record)
                    done.append((tracker, record.offset, Outcome.MALFORMED))
                elif (left_ms := decode_millis(expires) - now_ms) <= 0:
                    done.append((tracker, record.offset, Outcome.EXPIRED))
                else:
                    requests.append(Request(record, request_id, address, now + left_ms / 1000, tracker, clock))
        return taken


class _Addresses(dict[bytes, TopicPartitionInfo | None]):
    """Where answers go, by what requests say; None where they must not go."""

    def __init__(self, topics: RequestTopics) -> None:
        super().__init__()
        self._topics = topics

    def __missing__(self, header: bytes) -> TopicPartitionInfo | None:
        name = header.decode(errors="replace")
        if len(self) >= _KNOWN_TOPICS:
            self.clear()
        self[header] = address = TopicPartitionInfo(name) if self._topics.is_response_topic(name) else None
        return address


def _complain(record: Record) -> None:
    logger.warning(
        "%s[%d]@%d is no request, and passed over: it needs the headers %s of %d bytes, %s of %d and, naming a topic "
        "for answers of this kind, %s",
        *(record.topic, record.partition, record.offset),
        *(REQUEST_ID, _ID_BYTES, EXPIRE_TS, _TIME_BYTES, RESPONSE_TOPIC),
    )
