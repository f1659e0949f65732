"""Samples as they travel: events, of one version."""

from collections.abc import Iterator
from typing import Protocol

from queuecore.metrics import EVENT_VERSION
from queuecore.proto.events_pb2 import ConsumedSample, Event, RequestSample, SentSample

Sample = RequestSample | ConsumedSample | SentSample


class SampleSource(Protocol):
    def samples(self, now: float) -> Iterator[tuple[str, Sample]]:
        """What happened since this was last asked, each with the id of the service that it is of. Asked by one thread;
        `now` is of the monotonic clock."""


def to_event(sample: Sample, service_id: str, at_ms: int) -> Event:
    event = Event(version=EVENT_VERSION, at_ms=at_ms, service_id=service_id)
    match sample:
        case RequestSample():
            event.request_sample.CopyFrom(sample)
        case ConsumedSample():
            event.consumed_sample.CopyFrom(sample)
        case SentSample():
            event.sent_sample.CopyFrom(sample)
    return event
