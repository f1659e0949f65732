"""What each sample of the pipeline's benchmark says, as bytes that are put together to events.

What is the same from one time to the next is serialised once: parts of a message one behind the other are the message.
"""

from functools import cache
from typing import Final
from uuid import UUID

from queueapi.choices import LagStatus
from queuecore.metrics import EVENT_VERSION, PROCESSING_BOUNDS_MS
from queuecore.metrics.sampling import TOLD
from queuecore.proto.events_pb2 import (
    ConsumedSample,
    EntityShare,
    Event,
    LetterShare,
    OffsetSample,
    RequestSample,
    SentSample,
    TenantShare,
)
from queuecore.requests import LAG_BOUNDS_MS

PARTITIONS: Final = 50
INTERVAL_MS: Final = 10_000
# What a busy partition gets, and what of it a group that falls behind handles.
MESSAGES: Final = 1_000
HALF: Final = MESSAGES // 2
# An entity that is among a partition's most frequent ones in one interval may not be in the next.
VARIANTS: Final = 4

_TOPICS: Final = ("tb_rule_engine.main", "tb_rule_engine.hp", "tb_core", "tb_edge.events", "archive")
_MESSAGE_BYTES: Final = 100
_TENANTS: Final = 100
_TENANTS_OF_ONE: Final = 3
_LETTERS: Final = 2
# The key of the field; its length follows in one byte, as it is below 128.
_OFFSET_SAMPLE: Final = bytes((Event.OFFSET_SAMPLE_FIELD_NUMBER << 3 | 2,))


def queue_id(number: int) -> UUID:
    return UUID(int=number + 1, version=4)


def topic_of(queue: int) -> str:
    name, copy = _TOPICS[queue % len(_TOPICS)], queue // len(_TOPICS)
    return f"{name}.tenant{copy}" if copy else name


def has_letters(number: int, status: LagStatus) -> bool:
    """One partition of each queue has messages that nobody can handle, while it is in no other trouble."""
    return status is LagStatus.OK and number % PARTITIONS == PARTITIONS // 2


def head(service_id: str, at_ms: int) -> bytes:
    return Event(version=EVENT_VERSION, at_ms=at_ms, service_id=service_id).SerializeToString()


def offsets(number: int, end: int, committed: int) -> bytes:
    body = _named(number) + OffsetSample(end_offset=end, committed_offset=committed).SerializeToString()
    return _OFFSET_SAMPLE + bytes((len(body),)) + body


@cache
def consumed(number: int, status: LagStatus, variant: int) -> bytes:
    """Of a group that gets on as the status says; of one that stalls all attempts fail."""
    queue, partition = divmod(number, PARTITIONS)
    handled = {LagStatus.WARN: HALF, LagStatus.STALL: 0}.get(status, MESSAGES)
    letters = _LETTERS if has_letters(number, status) else 0
    failed = 0 if handled else MESSAGES
    sample = ConsumedSample(
        queue_id=str(queue_id(queue)),
        partition=partition,
        topic=f"{topic_of(queue)}.{partition}",
        group=_group(queue, partition),
        interval_ms=INTERVAL_MS,
        polled=MESSAGES,
        polled_bytes=MESSAGES * _MESSAGE_BYTES,
        packs=10,
        commits=10 if handled else 0,
        succeeded=handled - letters,
        failed=failed + letters,
        retried=failed,
        handled=handled - letters,
        dead_lettered=letters,
        processing_bounds_ms=PROCESSING_BOUNDS_MS,
        # Most attempts take some 10 to 50 ms.
        processing_buckets=[0, 0, 0, 1, 2, 3, 2, 1, 1] + [0] * (len(PROCESSING_BOUNDS_MS) - 8),
        processing_total_ms=456.5,
        tenants=_tenants(number, handled, letters),
        entities=_entities(number, variant),
        letters=[
            LetterShare(fingerprint=f"{queue:016x}", tenant_id=tenant, letters=1)
            for tenant in _tenant_ids(number)[:letters]
        ],
    )
    return Event(consumed_sample=sample).SerializeToString()


@cache
def sent(number: int) -> bytes:
    queue, partition = divmod(number, PARTITIONS)
    return _sent(f"{topic_of(queue)}.{partition}", _tenants(number, MESSAGES, letters=0))


@cache
def sent_letters(number: int) -> bytes:
    return _sent(f"{topic_of(number // PARTITIONS)}.dlq", _tenants(number, _LETTERS, letters=0))


@cache
def requests(instance: int, topic: str) -> bytes:
    sample = RequestSample(
        request_topic=topic,
        interval_ms=INTERVAL_MS,
        pending=instance,
        pending_limit=10_000,
        pending_memory_bytes=instance * 1_000,
        oldest_pending_ms=instance * 10,
        sent=500,
        answered=497,
        failed=2,
        timed_out=1,
        lag_bounds_ms=LAG_BOUNDS_MS,
        lag_buckets=[0, 50, 150, 200, 80, 17] + [0] * (len(LAG_BOUNDS_MS) - 5),
        lag_total_ms=5_432.1,
    )
    return Event(request_sample=sample).SerializeToString()


@cache
def _named(number: int) -> bytes:
    queue, partition = divmod(number, PARTITIONS)
    return OffsetSample(
        queue_id=str(queue_id(queue)),
        partition=partition,
        topic=f"{topic_of(queue)}.{partition}",
        group=_group(queue, partition),
    ).SerializeToString()


def _group(queue: int, partition: int) -> str:
    return f"{topic_of(queue)}-consumer-{partition}"


def _sent(topic: str, tenants: list[TenantShare]) -> bytes:
    messages = sum(one.messages for one in tenants)
    sample = SentSample(
        topic=topic, interval_ms=INTERVAL_MS, sent=messages, sent_bytes=messages * _MESSAGE_BYTES, tenants=tenants
    )
    return Event(sent_sample=sample).SerializeToString()


def _tenant_ids(number: int) -> list[str]:
    """Those of a partition are some of all."""
    return [str(UUID(int=(number + index) % _TENANTS + 1_000, version=4)) for index in range(_TENANTS_OF_ONE)]


def _tenants(number: int, messages: int, letters: int) -> list[TenantShare]:
    """The first has what cannot be shared out."""
    each, rest = divmod(messages, _TENANTS_OF_ONE)
    counts = [each + rest, *[each] * (_TENANTS_OF_ONE - 1)]
    return [
        TenantShare(
            tenant_id=tenant,
            messages=count,
            bytes=count * _MESSAGE_BYTES,
            errors=int(index < letters),
            dead_letters=int(index < letters),
        )
        for index, (tenant, count) in enumerate(zip(_tenant_ids(number), counts, strict=True))
    ]


def _entities(number: int, variant: int) -> list[EntityShare]:
    """Half of them are always the same ones."""
    first = number * 1_000
    same = [first + index for index in range(TOLD // 2)]
    others = [first + 100 + variant * TOLD + index for index in range(TOLD - len(same))]
    tenants = _tenant_ids(number)
    return [
        EntityShare(
            key=queue_id(one).bytes, is_uuid=True, tenant_id=tenants[index % len(tenants)], messages=100 - index * 5
        )
        for index, one in enumerate(same + others)
    ]
