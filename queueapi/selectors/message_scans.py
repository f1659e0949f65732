"""Looking for messages in a queue without a group: bounded work for each call, and an answer that says how far it got.

Partitions are gone through together, in the order of time as far as each keeps it. What is found is thus in that order
as well, and where the work ends is one moment rather than somewhere in the first partition.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from queueapi import runtime
from queueapi.addressing import addresses
from queueapi.errors import InvalidInput
from queueapi.models import Queue
from queueapi.selectors.message_texts import TextSearch
from queueapi.selectors.message_types import form_of_queue
from queueapi.selectors.partition_walks import (
    DEFAULT_LIMITS,
    FIRST_LOOK,
    Budget,
    Reach,
    ScanLimits,
    Spent,
    StoppedBy,
    walk_together,
)
from queueapi.selectors.queue_partitions import check_partition
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import OffsetOutOfRange, UnknownQueue
from queuecore.groups.lag import describe_existing
from queuecore.hashing import Entity
from queuecore.messages import TENANT_ID, Record
from queuecore.providers.base import QueueAdmin
from queuecore.topics import ProviderPartition

MAX_FOUND: Final = 500
MAX_TEXT: Final = 200
# More would each need a look before the first message is known.
MAX_PARTITIONS: Final = 32


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """Which messages are wanted, and where to begin.

    offset     the first to look at; of one partition
    from_ms    stored then or later
    to_ms      stored before then
    text       in the key, the headers or the payload, in any case
    places     by partition, where an earlier scan ended; None: it was through with that one
    """

    limit: int = 50
    newest_first: bool = True
    partition: int | None = None
    offset: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    entity: UUID | None = None
    tenant: UUID | None = None
    text: str = ""
    places: Mapping[int, int | None] | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found, and how far was looked. `complete`: there is nothing more to look at, as of now."""

    found: tuple[tuple[int, Record], ...]
    reaches: tuple[Reach, ...]
    scanned: int
    scanned_bytes: int
    stopped_by: StoppedBy | None

    @property
    def complete(self) -> bool:
        return all(reach.next is None for reach in self.reaches)


def scan_messages(
    queue: Queue, query: MessageQuery, limits: ScanLimits = DEFAULT_LIMITS, clock: Clock = SYSTEM_CLOCK
) -> Scan:
    """InvalidInput for what cannot be asked of this queue."""
    reaches = _reaches(runtime.provider().admin(), queue, query)
    search = TextSearch(query.text, form_of_queue(queue)) if query.text else None
    budget = Budget(limits, clock)
    with closing(runtime.provider().reader()) as reader:
        walk = walk_together(reader, reaches, budget, newest_first=query.newest_first)
        found, scanned, stopped_by = _gather(walk, query, search, budget)
    for reach in reaches:
        if reach.next is not None and (reach.next <= reach.low if query.newest_first else reach.next >= reach.high):
            reach.next = None
    return Scan(tuple(found), tuple(reaches), scanned, budget.size_bytes, stopped_by)


def read_message(queue: Queue, partition: int, offset: int) -> Record | None:
    """Exactly that one; None where it is not, not yet or no longer there."""
    if partition not in queue.partition_numbers:
        return None
    place = queue.partition_info(partition).place
    with closing(runtime.provider().reader()) as reader:
        try:
            records = reader.read(place, offset, 1)
        except OffsetOutOfRange:
            return None
    return records[0] if records and records[0].offset == offset else None


def partitions_for(queue: Queue, query: MessageQuery) -> list[int]:
    """Those that can hold what is wanted."""
    if query.partition is not None:
        check_partition(queue, query.partition)
        return [query.partition]
    if query.offset is not None:
        raise InvalidInput("an offset is of one partition; name the partition as well")
    if query.entity is not None:
        try:
            info = addresses().resolve_exactly(queue.tenant_id, queue.name, query.entity)
            return [*_formerly(queue, query.entity), info.partition or 0]
        except UnknownQueue:
            pass  # no producer knows the queue yet; what it has is looked through
    numbers = queue.partition_numbers
    if len(numbers) > MAX_PARTITIONS:
        raise InvalidInput(
            f"queue {queue.name} has {len(numbers)} partitions, and up to {MAX_PARTITIONS} are looked at together; "
            "name a partition or an entity"
        )
    return numbers


def _formerly(queue: Queue, entity: Entity) -> list[int]:
    """Where the entity's messages went before the queue was resized, while that lasts."""
    numbers = queue.former_numbers
    return [numbers[abs(addresses().hash(entity)) % len(numbers)]] if numbers else []


def _reaches(admin: QueueAdmin, queue: Queue, query: MessageQuery) -> list[Reach]:
    """With one question for where partitions begin and end, and one for each time. A topic that is not there has
    nothing to look at."""
    places = {number: queue.partition_info(number).place for number in partitions_for(queue, query)}
    described = describe_existing(admin, {place.topic for place in places.values()})
    ends = {one.place: (one.beginning or 0, one.end or 0) for topic in described.values() for one in topic.partitions}
    there = [place for place in places.values() if place in ends]
    earliest = _at(admin, there, query.from_ms)
    latest = _at(admin, there, query.to_ms)
    return [
        _reach(number, place, *ends.get(place, (0, 0)), earliest.get(place), latest.get(place), query)
        for number, place in places.items()
    ]


def _at(admin: QueueAdmin, places: Sequence[ProviderPartition], time_ms: int | None) -> Mapping[ProviderPartition, int]:
    return {} if time_ms is None or not places else admin.offsets_for_times(dict.fromkeys(places, time_ms))


def _reach(
    number: int,
    place: ProviderPartition,
    beginning: int,
    end: int,
    earliest: int | None,
    latest: int | None,
    query: MessageQuery,
) -> Reach:
    low = max(beginning, earliest or 0)
    high = end if latest is None else min(end, latest)
    start = query.offset
    if query.places is not None:
        start = query.places.get(number)
        if start is None:
            low = high
        elif query.newest_first:
            start -= 1
    if start is not None:
        low, high = (low, min(high, start + 1)) if query.newest_first else (max(low, start), high)
    reach = Reach(number, place, beginning, end, low, max(low, high))
    reach.next = reach.high if query.newest_first else reach.low
    return reach


def _gather(
    records: Iterator[tuple[Reach, Record]], query: MessageQuery, search: TextSearch | None, budget: Budget
) -> tuple[list[tuple[int, Record]], int, StoppedBy | None]:
    found: list[tuple[int, Record]] = []
    scanned = 0
    try:
        for reach, record in records:
            scanned += 1
            reach.next = record.offset + (not query.newest_first)
            if matches(record, query) and (search is None or search.finds(record)):
                found.append((reach.partition, record))
                if len(found) >= query.limit:
                    return found, scanned, "limit"
            # To look for a text may take longer than to read the records.
            if search is not None and scanned >= FIRST_LOOK and budget.is_late:
                return found, scanned, "time"
    except Spent as spent:
        return found, scanned, spent.by
    return found, scanned, None


def matches(record: Record, query: MessageQuery) -> bool:
    """Whether it is of the entity and the tenant that are wanted."""
    if query.entity is not None and record.key != query.entity:
        return False
    return query.tenant is None or record.headers.get(TENANT_ID) == str(query.tenant).encode()
