"""Letters to be replayed, and a look at what was sent."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from uuid import UUID

from queueapi import runtime
from queueapi.actions.letter_index import index_letters
from queueapi.models import DeadLetter, Operation, Queue, Replay
from queuecore.deadletter.envelope import PREFIX
from queuecore.messages import REPLAY_LETTER, Key, Record
from queuecore.topics import dead_letter_partition
from workers.operations.runner import run_operation

FAILED_AT_MS = 1_767_225_600_000
SIGNS = {"replaying": "r", "replayed": "E", "open": "o", "failed_again": "f", "discarded": "d"}


def make_letters(
    queue: Queue,
    count: int,
    *,
    partitions: int = 1,
    key: Key = b"sensor",
    first: int = 0,
    payload: bytes | None = None,
    **story: object,
) -> list[UUID]:
    """So many of one entity, dealt out to the partitions, in the order in which they failed."""
    records = [_letter(queue, number % partitions, first + number, key, payload, story) for number in range(count)]
    with closing(runtime.provider().reader()) as reader:
        assert index_letters(records, reader) == count
    rows = DeadLetter.objects.filter(queue=queue, letter_offset__gte=first, letter_offset__lt=first + count)
    return list(rows.order_by("letter_offset").values_list("id", flat=True))


def _letter(
    queue: Queue, partition: int, number: int, key: Key, payload: bytes | None, story: dict[str, object]
) -> Record:
    told = {"queue_id": queue.id, "exception_class": "ValueError", "failed_at_ms": FAILED_AT_MS + number, **story}
    headers = {f"{PREFIX}{name.replace('_', '.')}": str(value).encode() for name, value in told.items()}
    headers |= {"ts": b"12345678", "__queue.replay.count": b"7", "__queue.replay.group": b"somebody"}
    topic = dead_letter_partition(queue.partition_info(partition)).full_topic_name
    return Record(topic, partition, number, FAILED_AT_MS, key, headers, payload or b"data %d" % number)


def finished(operation: Operation) -> Operation:
    """The operation after one run, whatever came of it."""
    run_operation(operation.id)
    operation.refresh_from_db()
    return operation


def ran(replay: Replay) -> Replay:
    """The replay after one run, whatever came of it."""
    run_operation(replay.operation_id)
    return Replay.objects.select_related("operation").get(id=replay.id)


def sent_records(queue: Queue) -> list[Record]:
    """What the queue has, partition by partition."""
    with closing(runtime.provider().reader()) as reader:
        return [record for info in queue.partition_infos() for record in reader.read(info.place, 0, 1_000_000)]


def sent_letters(queue: Queue) -> list[UUID]:
    return letters_in(sent_records(queue))


def letters_in(records: Iterable[Record]) -> list[UUID]:
    return [UUID(record.headers[REPLAY_LETTER].decode()) for record in records]


def states(letters: Sequence[UUID]) -> str:
    """One character for each: (r)eplaying, r(E)played, (o)pen, (f)ailed again, (d)iscarded."""
    rows = DeadLetter.objects.in_bulk(list(letters))
    return "".join(SIGNS[rows[letter].state] for letter in letters)


def item_states(replay: Replay) -> list[str]:
    return list(replay.items.order_by("sequence").values_list("state", flat=True))
