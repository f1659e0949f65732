"""A routing table as text: what a store keeps, and what two are compared by."""

import json
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from queuecore.errors import ConfigurationError
from queuecore.routing import QueueKey, RoutedQueue, RoutingTable
from queuecore.topics import SYSTEM_TENANT, ServiceType

# Raised when a table says more than before: who cannot read all of it must not route by the rest. One that says no more
# is written as it was, so that programs of both kinds route by it while they are updated one by one.
FORMAT: Final = 2
_WITHOUT_NUMBERS: Final = 1
_FLAGS: Final = ("duplicate_to_all_partitions", "use_internal_partition")


def to_json(table: RoutingTable) -> str:
    """All of a table but its version, which its store gives. Tables that route alike are equal texts."""
    content = {
        "format": FORMAT if any(queue.first_partition for queue in table.queues.values()) else _WITHOUT_NUMBERS,
        "hash_name": table.hash_name,
        "isolated": _texts(table.isolated),
        "queues": [_queue_to_json(key, table.queues[key]) for key in sorted(table.queues)],
        "tenants": None if table.tenants is None else _texts(table.tenants),
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def from_json(text: str, version: int) -> RoutingTable:
    """The table of that version. ConfigurationError where this program cannot read it, or not all of it."""
    try:
        content = json.loads(text)
        if content["format"] not in (_WITHOUT_NUMBERS, FORMAT):
            raise ConfigurationError(
                f"routing version {version} is written in format {content['format']}, this program reads up to "
                f"{FORMAT}; update it"
            )
        tenants = content["tenants"]
        return RoutingTable(
            version,
            dict(_queue_from_json(one) for one in content["queues"]),
            _tenants(content["isolated"]),
            None if tenants is None else _tenants(tenants),
            content["hash_name"],
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(f"routing version {version} cannot be read: {error!r}; publish it anew") from error


def _queue_to_json(key: QueueKey, queue: RoutedQueue) -> dict[str, Any]:
    """Without what is usual: most of a large table would be that."""
    told: dict[str, Any] = {
        "service_type": key.service_type.value,
        "queue": key.queue,
        "topic": queue.topic,
        "partitions": queue.partitions,
    }
    if key.tenant != SYSTEM_TENANT:
        told["tenant"] = str(key.tenant)
    if queue.first_partition:
        told["first_partition"] = queue.first_partition
    return told | {flag: True for flag in _FLAGS if getattr(queue, flag)}


def _queue_from_json(told: dict[str, Any]) -> tuple[QueueKey, RoutedQueue]:
    tenant = UUID(told["tenant"]) if "tenant" in told else SYSTEM_TENANT
    flags = {flag: told[flag] for flag in _FLAGS if flag in told}
    key = QueueKey(ServiceType(told["service_type"]), told["queue"], tenant)
    first = told.get("first_partition", 0)
    return key, RoutedQueue(told["topic"], told["partitions"], **flags, first_partition=first)


def _texts(tenants: Iterable[UUID]) -> list[str]:
    return sorted(map(str, tenants))


def _tenants(texts: Iterable[str]) -> frozenset[UUID]:
    return frozenset(map(UUID, texts))
