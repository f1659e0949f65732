"""Which letters of a replay have arrived: read where they were sent to."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from queuecore.errors import OffsetOutOfRange, UnknownTopic
from queuecore.messages import REPLAY_ID, REPLAY_LETTER, Record
from queuecore.providers.base import Provider, QueueAdmin, QueueReader
from queuecore.topics import ProviderPartition

_READ_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Arrivals:
    """`letters` are there. Of the partitions in `lost` some records were removed before anybody could look."""

    letters: set[UUID] = field(default_factory=set)
    lost: set[ProviderPartition] = field(default_factory=set)


def find_arrivals(provider: Provider, replay_id: UUID, offsets: Mapping[ProviderPartition, int]) -> Arrivals:
    """The letters of this replay that are behind these offsets, up to where the partitions end now."""
    arrivals = Arrivals()
    with closing(provider.reader()) as reader:
        for place, offset in offsets.items():
            try:
                _look_through(provider, reader, place, offset, str(replay_id).encode(), arrivals)
            except UnknownTopic:
                arrivals.lost.add(place)
    return arrivals


def _look_through(
    provider: Provider, reader: QueueReader, place: ProviderPartition, offset: int, mark: bytes, arrivals: Arrivals
) -> None:
    admin = provider.admin()
    _mend(admin, place)
    end = admin.end_offsets([place])[place]
    while offset < end:
        try:
            records = reader.read(place, offset, _READ_AT_ONCE)
        except OffsetOutOfRange:
            arrivals.lost.add(place)
            offset = max(offset + 1, admin.beginning_offsets([place])[place])
            continue
        if not records:
            return
        arrivals.letters.update(letter for record in records if (letter := _letter_in(record, mark)))
        offset = records[-1].offset + 1


def _mend(admin: QueueAdmin, place: ProviderPartition) -> None:
    """A writer that was killed may have stored what no reader sees, until somebody writes there next. Creating what
    exists mends that, and changes nothing else."""
    admin.create_topics([admin.describe_topics([place.topic])[place.topic].spec])


def _letter_in(record: Record, mark: bytes) -> UUID | None:
    headers = record.headers
    if headers.get(REPLAY_ID) != mark:
        return None
    try:
        return UUID(headers[REPLAY_LETTER].decode())
    except (KeyError, ValueError):
        return None
