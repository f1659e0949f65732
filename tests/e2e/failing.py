"""Queues of a test's own, and messages that become dead letters there."""

from typing import Any, Final
from uuid import uuid4

from queuecore.testing.waiting import wait_until
from queuecore.topics import SYSTEM_TENANT
from tests.system import RunningSystem

# As if a service behind had been mended meanwhile.
UNTIL_REPLAYED: Final = {"sensor": 7, "temperature": 20.5, "fault": "until_replayed"}
UNTIL_MENDED: Final = {"sensor": 7, "temperature": "warm"}


def make_queue(system: RunningSystem, name: str, **told: Any) -> str:
    """One with a single partition, handled as the demo's rule engine does, where nothing else is said; its id."""
    unique = f"{name}-{uuid4().hex[:8]}"
    fields = {"name": unique, "topic": unique.lower(), "handler": "demo.rule_engine", "partitions": 1, **told}
    return str(system.request("POST", "queues", fields)["id"])


def fail(system: RunningSystem, queue: str, reading: dict[str, Any], number: int = 1) -> str:
    """Publish it so many times; once all are dead letters, the entity by which they are found."""
    entity = str(uuid4())
    publish(system, queue, reading, number, entity)
    wait_until(lambda: len(letters_of(system, entity)) == number)
    return entity


def publish(system: RunningSystem, queue: str, reading: dict[str, Any], number: int, entity: str) -> None:
    message = {"tenant": str(SYSTEM_TENANT), "entity": entity, "payload": reading}
    answer = system.request("POST", f"queues/{queue}/messages/batch", {"messages": [message] * number})
    assert answer["stored"] == number


def letters_of(system: RunningSystem, entity: str) -> list[Any]:
    return system.get_all(f"dead-letters?text={entity}")
