"""What the demo's transport asks the core: who a device is. Some questions ask for trouble as well."""

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from queuecore.errors import UndecodableMessage
from queuecore.messages import QueueMessage
from workers.demo.seed import Sample
from workers.demo.traffic import SENSORS, sensor_id

UNREGISTERED: Final = -1
SLOW: Final = "slow"
# One among so many is about a device that nobody registered, or takes long to answer.
UNREGISTERED_EVERY: Final = 100
SLOW_EVERY: Final = 40


@dataclass(frozen=True, slots=True)
class Question:
    """`fault` is what is to go wrong: `slow`, or nothing."""

    device: UUID
    sensor: int
    fault: str = ""

    def message(self) -> QueueMessage:
        """With the device as key: where there are several cores, always the same one is asked."""
        told = {"device": str(self.device), "sensor": self.sensor, "fault": self.fault}
        return QueueMessage(self.device, json.dumps(told).encode())

    @classmethod
    def read(cls, data: bytes) -> Self:
        """UndecodableMessage for what is none: anybody may send to the topic."""
        try:
            told = json.loads(data)
            return cls(UUID(told["device"]), int(told["sensor"]), str(told.get("fault", "")))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UndecodableMessage(
                f"no question about a device: {type(error).__name__}; send JSON with `device` and `sensor`"
            ) from error


def questions(sample: Sample, seed: int = 7) -> Iterator[Question]:
    """About the devices of the sample's tenants, without end. The same seed gives the same questions."""
    tenants = (*sample.tenants, sample.noisy)
    chance = random.Random(seed)  # noqa: S311 - sample data, no secret
    for number in itertools.count(1):
        tenant, sensor = chance.choice(tenants), chance.randrange(SENSORS)
        if number % UNREGISTERED_EVERY == 0:
            sensor = UNREGISTERED
        fault = SLOW if number % SLOW_EVERY == SLOW_EVERY // 2 else ""
        yield Question(sensor_id(tenant, sensor), sensor, fault)
