"""What an isolation would make, before anybody decides on it: which queues and topics, and who would consume them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queueapi.actions.isolated_queues import ASKABLE, Asked, check_asked
from queueapi.cluster.models import ServiceInstance
from queueapi.errors import ActionError
from queueapi.models import Queue, Tenant
from queueapi.selectors.queue_warnings import queue_warnings
from queueapi.selectors.services import living


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that would be another than in the shared queue."""

    name: str
    shared: Any
    own: Any


@dataclass(frozen=True, slots=True)
class PlannedQueue:
    """topics       that would be created, dead letters' among them
    differences  from the shared queue
    """

    queue: Queue
    topics: tuple[str, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class IsolationPlan:
    """queues    that would be made
    services  that are there and consume this tenant's own queues alone, or its profile's tenants'; empty: those that
              consume shared queues consume its own as well
    warnings  what is allowed, and seldom wanted
    why_not   why it would be refused; empty: it would be done
    """

    queues: tuple[PlannedQueue, ...] = ()
    services: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def partitions(self) -> int:
        return sum(planned.queue.partitions for planned in self.queues)

    @property
    def topics(self) -> int:
        return sum(len(planned.topics) for planned in self.queues)


def plan_isolation(tenant: Tenant, asked: Sequence[Asked]) -> IsolationPlan:
    """As it would be made now. Nothing is stored."""
    try:
        made = check_asked(tenant, asked)
    except ActionError as error:
        return IsolationPlan(why_not=error.message)
    alive = list(living())
    queues = tuple(_planned(queue, shared) for queue, shared in made)
    told = (
        warning for queue, _ in made for warning in queue_warnings(queue, ("partitions", *_named(asked, queue)), alive)
    )
    return IsolationPlan(queues, _dedicated(tenant, alive), tuple(dict.fromkeys([*told, *_unserved(tenant, alive)])))


def _planned(queue: Queue, shared: Queue) -> PlannedQueue:
    differences = (
        Difference(name, getattr(shared, name), getattr(queue, name))
        for name in ASKABLE
        if getattr(shared, name) != getattr(queue, name)
    )
    letters = (queue.letter_topic,) if queue.dlq_enabled else ()
    topics = dict.fromkeys(info.full_topic_name for info in queue.partition_infos())
    return PlannedQueue(queue, (*topics, *letters), tuple(differences))


def _named(asked: Sequence[Asked], queue: Queue) -> Mapping[str, Any]:
    return next((one for one in asked if one["name"].lower() == queue.name.lower()), {})


def _dedicated(tenant: Tenant, alive: Sequence[ServiceInstance]) -> tuple[str, ...]:
    wanted = {str(tenant.pk), str(tenant.profile_id)}
    return tuple(sorted(service.service_id for service in alive if wanted & set(map(str, service.dedicated_to))))


def _unserved(tenant: Tenant, alive: Sequence[ServiceInstance]) -> list[str]:
    label = tenant.profile.label
    if not label or any(label in service.labels for service in alive):
        return []
    return [f"no service with the label {label} is there, and nobody else consumes queues of its profile's tenants"]
