"""What the rows of a large installation are like, each by its number."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

PARTITIONS: Final = 10
SERVICES: Final = 100
# Between one letter or entry and the next.
STEP_MS: Final = 20
HANDLER: Final = "log"

_NEWEST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_VIEWER: Final[Mapping[str, str]] = {"role": "tenant_viewer"}


def ids(count: int) -> list[UUID]:
    return [UUID(int=number + 1) for number in range(count)]


def queue(queue_id: UUID, number: int, tenants: Sequence[UUID]) -> dict[str, Any]:
    return {
        "id": queue_id, "tenant_id": tenants[number % len(tenants)], "name": f"Queue{number}",
        "topic": f"queue{number}", "handler": HANDLER, "partitions": PARTITIONS,
    }  # fmt: skip


def requests(number: int, at: str) -> dict[str, Any]:
    """A minute of a hundred services."""
    asked = {"service_id": f"service-{number % SERVICES}", "request_topic": "prices", "pending": number % 977}
    return {**asked, at: _NEWEST - timedelta(minutes=number // SERVICES)}


def usage(tenant: UUID, day: int) -> dict[str, Any]:
    return {"tenant_id": tenant, "day": _NEWEST.date() - timedelta(days=day), "sent": 120, "handled": 118}


def lag(of: Any, info: Any) -> dict[str, Any]:
    number = info.partition
    return {
        "queue_id": of.pk, "partition": number, "topic": info.full_topic_name, "consumer_group": "c",
        "end_offset": 9_000, "lag_messages": (of.pk.int * 7 + number) % 977, "as_of": _NEWEST,
        "lag_seconds": None if number == 0 else (of.pk.int * 13 + number) % 991 / 4,
    }  # fmt: skip


def partition(number: int, info: Any) -> dict[str, Any]:
    instance = f"service-{number % SERVICES}"
    return {
        "name": info.full_topic_name, "service_type": "TB_RULE_ENGINE", "queue": f"Queue{number // PARTITIONS}",
        "number": info.partition, "tenant": info.tenant_id, "owner": instance, "target": instance,
        "epoch": number + 1,
    }  # fmt: skip


def service(number: int) -> dict[str, Any]:
    times = dict.fromkeys(("started_at", "heartbeat_at", "lease_expires_at"), _NEWEST)
    return {
        "service_id": f"service-{number}", "incarnation": "1", "service_types": [], "host": "h", "pid": 1, **times,
    }  # fmt: skip


def consumer(of: UUID, number: int) -> dict[str, Any]:
    return {
        "queue_id": of, "service_id": f"service-{number}", "consumer_group": f"c-{number}", "partitions": [number],
        "state": "running", "since": _NEWEST, "as_of": _NEWEST,
    }  # fmt: skip


def rebalance(one: UUID) -> dict[str, Any]:
    at = _before(one.int)
    return {"id": one, "state": "done", "cause": "manual", "reason": "disk", "created_at": at, "finished_at": at}


def operation(one: UUID, tenants: Sequence[UUID]) -> dict[str, Any]:
    tenant = tenants[one.int % len(tenants)]
    return {"id": one, "kind": "replay", "summary": "Replay", "total": 1, "tenant_id": tenant}


def isolation(one: UUID, tenants: Sequence[UUID]) -> dict[str, Any]:
    return {
        "id": one, "tenant_id": tenants[one.int % len(tenants)], "state": "refused", "queues": [{"name": "Main"}],
        "reason": "bursts", "requested_by_name": "eve", "decided_by_name": "ada", "decided_at": _NEWEST,
    }  # fmt: skip


def channel(one: UUID) -> dict[str, Any]:
    return {"id": one, "name": f"channel {one.int}", "kind": "email", "options": {"recipients": ["a@example.org"]}}


def rule(one: UUID, queues: Sequence[UUID]) -> dict[str, Any]:
    of = queues[one.int % len(queues)]
    return {"id": one, "name": f"rule {one.int}", "metric": "lag_messages", "threshold": 100.0, "queue_id": of}


def alert(one: UUID, rules: Sequence[UUID], queues: Sequence[UUID]) -> dict[str, Any]:
    of, at = queues[one.int % len(queues)], _before(one.int)
    return {
        "id": one, "rule_id": rules[one.int % len(rules)], "rule_name": "rule", "metric": "lag_messages",
        "severity": "warning", "subject_key": f"queue:{one}", "subject_name": "Queue", "queue_id": of, "value": 150.0,
        "threshold": 100.0, "reason": "150 messages wait", "since": at, "fired_at": at,
    }  # fmt: skip


def delivery(one: UUID, channel_id: UUID) -> dict[str, Any]:
    at = _before(one.int)
    return {
        "id": one, "channel_id": channel_id, "state": "sent", "attempts": 1, "created_at": at, "due_at": at,
        "finished_at": at,
    }  # fmt: skip


def silence(one: UUID, queues: Sequence[UUID]) -> dict[str, Any]:
    at = _before(one.int)
    return {
        "id": one, "queue_id": queues[one.int % len(queues)], "reason": "an upgrade", "created_by": "ada",
        "created_at": at, "until": at + timedelta(hours=1),
    }  # fmt: skip


def quarantined(number: int, queues: Sequence[UUID]) -> dict[str, Any]:
    place = {"letter_topic": "queue0.dlq", "letter_partition": 0, "letter_offset": number}
    return {"queue_id": queues[number % len(queues)], "error": "no story", **place}


def group(number: int, of: UUID) -> dict[str, Any]:
    return {
        "queue_id": of, "fingerprint": f"{number:016}", "exception_class": "demo.Error", "exception_message": "hot",
        "first_seen": _before(number), "last_seen": _before(number), "letters": 100, "open_letters": number % 100,
    }  # fmt: skip


def letter(number: int, groups: Sequence[Any], tenants: Sequence[UUID]) -> dict[str, Any]:
    of, at = groups[number * 31 % len(groups)], _before(number)
    return {
        "id": UUID(int=number + 1), "queue_id": of.queue_id, "tenant_id": tenants[number * 7 % len(tenants)],
        "group_id": of.pk, "state_changed_at": at, "letter_topic": "queue0.dlq", "letter_partition": 0,
        "letter_offset": number, "topic": "queue0.0", "partition": 0, "offset": number, "sent_at": at,
        "key": UUID(int=number * 2**64), "handler": HANDLER, "consumer_group": "group",
        "reason": "retries_exhausted", "exception_class": "demo.Error", "fingerprint": of.fingerprint,
        "exception_message": f"sensor {number} is too hot", "attempts": 4, "first_failed_at": at, "failed_at": at,
    }  # fmt: skip


def entry(number: int, tenants: Sequence[UUID]) -> dict[str, Any]:
    return {
        "at": _before(number), "actor_name": f"person-{number % 100}", "tenant_id": tenants[number % len(tenants)],
        "action": "change", "object_type": "queue", "object_id": str(UUID(int=number)),
        "before": {"retries": number % 7}, "after": {"retries": number % 11},
    }  # fmt: skip


def account(user: int, tenants: Sequence[UUID]) -> dict[str, Any]:
    return {"user_id": user, "tenant_id": tenants[user % len(tenants)], **_VIEWER}


def token(user: int, tenants: Sequence[UUID]) -> dict[str, Any]:
    return {
        "name": "deploy", "prefix": f"swy_{user:08x}", "digest": "", "scopes": ["queues:read"],
        "created_by_id": user, "tenant_id": tenants[user % len(tenants)], **_VIEWER,
    }  # fmt: skip


def _before(number: int) -> datetime:
    return _NEWEST - timedelta(milliseconds=STEP_MS * number)
