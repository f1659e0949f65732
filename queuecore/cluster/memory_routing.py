"""Routing versions within one process."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from queuecore.clock import Clock
from queuecore.cluster.store import KEPT_VERSIONS
from queuecore.routing import RoutingTable


@dataclass(slots=True)
class _Producer:
    version: int
    expires_at: float


class MemoryRouting:
    """A RoutingStore."""

    def __init__(self, clock: Clock) -> None:
        self._routing_clock = clock
        self._routing_lock = threading.Lock()
        self._tables: dict[int, RoutingTable] = {}
        self._latest = 0
        self._producers: dict[str, _Producer] = {}

    def publish_routing(self, table: RoutingTable) -> int:
        with self._routing_lock:
            return self._publish(table)

    def publish_routing_after(self, version: int, table: RoutingTable) -> int | None:
        with self._routing_lock:
            return self._publish(table) if version == self._latest else None

    def routing_version(self) -> int:
        with self._routing_lock:
            return self._latest

    def routing(self, version: int | None = None) -> RoutingTable | None:
        with self._routing_lock:
            return self._tables.get(self._latest if version is None else version)

    def acknowledge(self, producer_id: str, version: int, lease_s: float) -> None:
        with self._routing_lock:
            self._producers[producer_id] = _Producer(version, self._routing_clock.monotonic() + lease_s)

    def acknowledgements(self) -> Mapping[str, int]:
        with self._routing_lock:
            return self._living()

    def yet_to_acknowledge(self, version: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, known in self.acknowledgements().items() if known < version))

    def forget_producer(self, producer_id: str) -> None:
        with self._routing_lock:
            self._producers.pop(producer_id, None)

    def _publish(self, table: RoutingTable) -> int:
        before = self._tables.get(self._latest)
        if before is None or _content(before) != _content(table):
            self._latest += 1
            self._tables[self._latest] = replace(table, version=self._latest)
            self._prune()
        return self._latest

    def _prune(self) -> None:
        living = self._living()
        self._producers = {name: one for name, one in self._producers.items() if name in living}
        used, oldest = set(living.values()), self._latest - KEPT_VERSIONS
        self._tables = {number: one for number, one in self._tables.items() if number > oldest or number in used}

    def _living(self) -> dict[str, int]:
        now = self._routing_clock.monotonic()
        return {name: one.version for name, one in self._producers.items() if one.expires_at > now}


def _content(table: RoutingTable) -> tuple[object, ...]:
    """All but the version."""
    return table.queues, table.isolated, table.tenants, table.hash_name
