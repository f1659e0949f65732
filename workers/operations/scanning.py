"""Which letters of a replay have arrived: read where they were sent to."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import OffsetOutOfRange, ProviderUnavailable, UnknownTopic
from queuecore.messages import REPLAY_ID, REPLAY_LETTER, Record
from queuecore.providers.base import Provider, QueueReader
from queuecore.topics import ProviderPartition

_READ_AT_ONCE: Final = 2_000
# A transaction of somebody else hides what is behind it. Most are over soon.
_PATIENCE_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Arrivals:
    """`letters` are there. Of the partitions in `lost` some records were removed before anybody could look."""

    letters: set[UUID] = field(default_factory=set)
    lost: set[ProviderPartition] = field(default_factory=set)


def find_arrivals(
    provider: Provider, replay_id: UUID, offsets: Mapping[ProviderPartition, int], clock: Clock = SYSTEM_CLOCK
) -> Arrivals:
    """The letters of this replay that are behind these offsets, up to where the partitions end now. ProviderUnavailable
    while transactions of others keep that from being seen."""
    arrivals = Arrivals()
    until = clock.monotonic() + _PATIENCE_S
    with closing(provider.reader()) as reader:
        for place, offset in offsets.items():
            try:
                for records in _behind(provider, reader, place, offset, arrivals.lost):
                    if not records:
                        _wait(place, until, clock)
                    mark = str(replay_id).encode()
                    arrivals.letters.update(letter for record in records if (letter := _letter_in(record, mark)))
            except UnknownTopic:
                arrivals.lost.add(place)
    return arrivals


def _behind(
    provider: Provider, reader: QueueReader, place: ProviderPartition, offset: int, lost: set[ProviderPartition]
) -> Iterator[list[Record]]:
    """All records up to where the partition ends now; none at a time while the next are hidden."""
    admin = provider.admin()
    end = admin.end_offsets([place])[place]
    while offset < end:
        try:
            records = reader.read(place, offset, _READ_AT_ONCE)
        except OffsetOutOfRange:
            lost.add(place)
            offset = max(offset + 1, admin.beginning_offsets([place])[place])
            continue
        offset = reader.position(place)
        if records or offset < end:
            yield records


def _wait(place: ProviderPartition, until: float, clock: Clock) -> None:
    if clock.monotonic() >= until:
        raise ProviderUnavailable(
            f"{place} has a transaction that is neither committed nor aborted; what is behind it shows once it is"
        )
    clock.sleep(_LOOK_AGAIN_S)


def _letter_in(record: Record, mark: bytes) -> UUID | None:
    headers = record.headers
    if headers.get(REPLAY_ID) != mark:
        return None
    try:
        return UUID(headers[REPLAY_LETTER].decode())
    except (KeyError, ValueError):
        return None
