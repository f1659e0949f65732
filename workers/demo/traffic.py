"""Live traffic for the demo: steady readings of those who behave, and one tenant's bursts and nonsense."""

import json
import logging
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid5

from queueapi.actions.messages import publish_message
from queueapi.errors import TenantSuspended
from queueapi.models import Tenant
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import QueueOverloaded
from workers.demo.seed import Sample

logger = logging.getLogger("switchyard.demo")

SENSORS: Final = 40
STEADY_PER_S: Final = 20
BURST: Final = 1500
BURST_EVERY_S: Final = 45
# Among so many readings, one is in each kind of trouble that leaves a letter.
TROUBLE_EVERY: Final = 400
_SENSOR_NAMESPACE: Final = UUID("6a3f3a0e-0b51-4c5e-9d55-3d1c1f1c9a11")

# What a message asks for, by its place among TROUBLE_EVERY.
_FAULTS: Final[dict[int, dict[str, object]]] = {
    TROUBLE_EVERY // 8: {"fault": "until_replayed"},
    TROUBLE_EVERY // 4: {"core_fault": "recovering"},
    TROUBLE_EVERY // 2: {"core_fault": "slow"},
}
# What only the noisy tenant sends. None: bytes that are no reading.
_NONSENSE: Final[dict[int, dict[str, object] | None]] = {
    TROUBLE_EVERY // 8 + 50: {"temperature": "warm"},
    TROUBLE_EVERY // 4 + 50: {"sensor": -1},
    TROUBLE_EVERY // 2 + 50: None,
}
_ONCE_EVERY: Final = 31
# Refusals are told no more often.
_TELL_EVERY_S: Final = 60


@dataclass(frozen=True, slots=True)
class Message:
    tenant: Tenant
    entity: UUID
    payload: bytes


def sensor_id(tenant: Tenant, number: int) -> UUID:
    """The same whenever the demo is started."""
    return uuid5(_SENSOR_NAMESPACE, f"{tenant.id}/{number}")


class Traffic:
    """Publishes to the core until told to stop, as the transport that its devices are connected to. The same seed gives
    the same readings. What a quota or a suspension keeps out is lost, and counted: devices do not send again."""

    def __init__(self, sample: Sample, transport: str, seed: int = 7, clock: Clock = SYSTEM_CLOCK) -> None:
        self._sample = sample
        self._transport = transport
        self._random = random.Random(seed)  # noqa: S311 - sample data, no secret
        self._clock = clock
        self._stopping = threading.Event()
        self._count = 0
        self._tell_at_s = clock.monotonic()
        self.refused = 0

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        next_burst = self._clock.monotonic() + BURST_EVERY_S / 3
        while not self._stopping.is_set():
            self._publish(self.steady())
            if self._clock.monotonic() >= next_burst:
                self._publish(self.burst())
                next_burst += BURST_EVERY_S
            self._stopping.wait(1)

    def steady(self) -> Iterator[Message]:
        """One second of everybody's."""
        everybody = (*self._sample.tenants, self._sample.noisy)
        return (self._message(self._random.choice(everybody)) for _ in range(STEADY_PER_S))

    def burst(self) -> Iterator[Message]:
        """All at once, of one tenant."""
        return (self._message(self._sample.noisy) for _ in range(BURST))

    def _publish(self, messages: Iterator[Message]) -> None:
        for message in messages:
            if self._stopping.is_set():
                return
            try:
                publish_message(self._sample.core, message.tenant, message.entity, message.payload)
            except (QueueOverloaded, TenantSuspended) as error:
                self._refuse(error.message)

    def _refuse(self, why: str) -> None:
        self.refused += 1
        if self._clock.monotonic() >= self._tell_at_s:
            self._tell_at_s = self._clock.monotonic() + _TELL_EVERY_S
            logger.info("readings are refused, %d so far: %s", self.refused, why)

    def _message(self, tenant: Tenant) -> Message:
        self._count += 1
        place = self._count % TROUBLE_EVERY
        if place in _NONSENSE:
            tenant = self._sample.noisy
        number = self._random.randrange(SENSORS)
        reading = {
            "sensor": number,
            "temperature": round(self._random.gauss(21, 4), 2),
            "transport": self._transport,
            "sent_at_ms": self._clock.now_ms(),
            **({"core_fault": "once"} if self._count % _ONCE_EVERY == 0 else {}),
            **_FAULTS.get(place, {}),
            **(_NONSENSE.get(place) or {}),
        }
        is_noise = place in _NONSENSE and _NONSENSE[place] is None
        payload = b"\x00\x01 firmware dump" if is_noise else json.dumps(reading).encode()
        return Message(tenant, sensor_id(tenant, number), payload)
