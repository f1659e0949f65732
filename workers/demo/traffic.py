"""Live traffic for the demo: steady readings, a noisy tenant's bursts, and a few that fail."""

import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID, uuid5

from queueapi.actions.messages import publish_message
from queueapi.models import Queue, Tenant
from queuecore.clock import SYSTEM_CLOCK, Clock

SENSORS = 40
STEADY_PER_S = 20
BURST = 1500
BURST_EVERY_S = 45
FAULT_EVERY = 400
_SENSOR_NAMESPACE = UUID("6a3f3a0e-0b51-4c5e-9d55-3d1c1f1c9a11")


@dataclass(frozen=True, slots=True)
class Reading:
    tenant: Tenant
    entity: UUID
    payload: bytes


class Traffic:
    """Publishes until told to stop. The same seed gives the same readings."""

    def __init__(self, queue: Queue, tenants: list[Tenant], seed: int = 7, clock: Clock = SYSTEM_CLOCK) -> None:
        self._queue = queue
        self._tenants = tenants
        self._random = random.Random(seed)  # noqa: S311 - sample data, no secret
        self._clock = clock
        self._stopping = threading.Event()
        self._count = 0

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        next_burst = self._clock.monotonic() + BURST_EVERY_S / 3
        while not self._stopping.is_set():
            self._publish(self._steady())
            if self._clock.monotonic() >= next_burst:
                self._publish(self._burst())
                next_burst += BURST_EVERY_S
            self._stopping.wait(1)

    def _publish(self, readings: Iterator[Reading]) -> None:
        for reading in readings:
            if self._stopping.is_set():
                return
            publish_message(self._queue, reading.tenant, reading.entity, reading.payload)

    def _steady(self) -> Iterator[Reading]:
        for _ in range(STEADY_PER_S):
            yield self._reading(self._random.choice(self._tenants))

    def _burst(self) -> Iterator[Reading]:
        noisy = self._tenants[-1]
        for _ in range(BURST):
            yield self._reading(noisy)

    def _reading(self, tenant: Tenant) -> Reading:
        self._count += 1
        number = self._random.randrange(SENSORS)
        body: dict[str, object] = {"sensor": number, "temperature": round(self._random.gauss(21, 4), 2)}
        if self._count % FAULT_EVERY == FAULT_EVERY // 3:
            body["fault"] = "until_replayed"
        elif self._count % FAULT_EVERY == 0:
            body["temperature"] = "warm"
        elif self._count % 31 == 0:
            body["fault"] = "once"
        return Reading(tenant, uuid5(_SENSOR_NAMESPACE, f"{tenant.id}/{number}"), json.dumps(body).encode())
