"""Rebalances: planned, asked for, called off; and services that are to have nothing any more.

The cluster's rows may be in a database of their own. Both are changed, or neither, but for a crash between the two
commits: then the cluster does what was asked for, and nobody follows it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from uuid import UUID

from django.db import transaction

from queueapi.actions.actor import Actor, audit
from queueapi.actions.operations import cancel_operation, start_operation
from queueapi.cluster.databases import cluster_database
from queueapi.cluster.models import ServiceInstance
from queueapi.cluster.rows import reaching
from queueapi.cluster.store import DatabaseStore
from queueapi.config import config
from queueapi.errors import AlreadyFinal, InvalidInput
from queueapi.models import Operation, Queue
from queueapi.selectors.rebalances import REBALANCE, operation_of, recent_pause_ms
from queuecore.cluster.rebalances import Rebalance
from queuecore.cluster.resizing import queue_key
from queuecore.cluster.services import ServiceInfo, named_services, unknown_service
from queuecore.cluster.view import Spread
from queuecore.cluster.what_if import WhatIf, what_if
from queuecore.errors import ConfigurationError, InvalidName, UnknownQueue

LONGEST_REASON: Final = 500


def plan_rebalance(
    *,
    joining: Sequence[ServiceInfo] = (),
    leaving: Collection[str] = (),
    partitions: Mapping[Queue, int] | None = None,
    spread: Spread | None = None,
) -> WhatIf:
    """What a rebalance would do, now or if that were so; changes nothing. UnknownService, InvalidInput. Who has looked
    at the cluster already gives what it saw."""
    spread = DatabaseStore().spread() if spread is None else spread
    counts = {_key_of(queue, spread): count for queue, count in (partitions or {}).items()}
    settings = config()
    try:
        return what_if(
            spread,
            assignor=settings.cluster.assignor,
            hash_name=settings.queue.partitions.hash_function_name,
            joining=joining,
            leaving=leaving,
            partitions=counts,
            pause_ms=recent_pause_ms(),
        )
    except (ConfigurationError, InvalidName, UnknownQueue) as error:
        raise InvalidInput(error.message) from error


def plan_draining(service_id: str, *, draining: bool) -> WhatIf:
    """What would move if that service were to have nothing, or its share again. UnknownService."""
    spread = DatabaseStore().spread()
    if service_id not in spread.services:
        raise unknown_service(service_id, spread.services)
    if draining:
        return plan_rebalance(leaving=[service_id], spread=spread)
    return plan_rebalance(spread=replace(spread, draining=spread.draining - {service_id}))


def why_not_appliable(joining: Sequence[ServiceInfo], partitions: Mapping[Queue, int]) -> str:
    """What to do instead of asking for it; empty: it can be asked for."""
    if joining:
        return "a service joins by being started: start it, and partitions move to it by themselves"
    if partitions:
        return "a queue gets another number of partitions by being resized: resize it, and its new ones are given out"
    return ""


def start_rebalance(
    actor: Actor,
    *,
    reason: str,
    leaving: Collection[str] = (),
    joining: Sequence[ServiceInfo] = (),
    partitions: Mapping[Queue, int] | None = None,
) -> Operation:
    """Have partitions assigned anew, without the services that are leaving: these are to have nothing from now on. The
    operation follows it. InvalidInput says what to do instead of what cannot be asked for; UnknownService."""
    if why_not := why_not_appliable(joining, partitions or {}):
        raise InvalidInput(f"this can be planned, but not done: {why_not}")
    reason, leaving = _checked_reason(reason), sorted(set(leaving))
    with _changing():
        for service_id in leaving:
            _set_draining(actor, service_id, draining=True)
        rebalance = DatabaseStore().request_rebalance(reason, actor.name)
        told = {"rebalance": str(rebalance.id), "reason": reason, "leaving": leaving}
        audit(actor, "start_rebalance", "rebalance", rebalance.id, after=told)
        return start_operation(actor, REBALANCE, _summary(leaving), told, total=0)


def cancel_rebalance(actor: Actor, rebalance_id: UUID) -> Rebalance:
    """Ask for its end, whoever began it: what has not moved stays where it is. AlreadyFinal, UnknownRebalance."""
    with _changing():
        before = DatabaseStore().cancel_rebalance(rebalance_id)
        if before.state.is_final:
            raise AlreadyFinal(f"this rebalance is already {before.state}; there is nothing to cancel")
        if not before.is_unwanted:
            told = {"state": before.state.value, "unwanted": False}
            audit(actor, "cancel_rebalance", "rebalance", rebalance_id, before=told, after=told | {"unwanted": True})
        operation = operation_of(rebalance_id)
        if operation is not None and not operation.state_choice.is_final:
            cancel_operation(actor, operation.id)
    return replace(before, is_unwanted=True)


def set_service_draining(actor: Actor, service_id: str, *, draining: bool) -> bool:
    """Have a service give away all its partitions, as it will be stopped, or let it have its share again. The cluster
    does so by itself. False: it was so already. UnknownService."""
    with _changing():
        return _set_draining(actor, service_id, draining=draining)


def follow_rebalance(operation: Operation, rebalance: Rebalance) -> bool:
    """Let the operation say how far the rebalance is. False: it is no longer this owner's, who must stop at once."""
    held = Operation.objects.filter(id=operation.id, lease_owner=operation.lease_owner)
    if not held.update(total=rebalance.total, done=rebalance.done):
        return False
    operation.total, operation.done = rebalance.total, rebalance.done
    return True


@contextmanager
def _changing() -> Iterator[None]:
    """StoreUnavailable where the cluster's rows cannot be changed."""
    with transaction.atomic(), reaching(), transaction.atomic(using=cluster_database()):
        yield


def _set_draining(actor: Actor, service_id: str, *, draining: bool) -> bool:
    row = ServiceInstance.objects.filter(service_id=service_id, gone_at__isnull=True).first()
    if row is not None and row.is_draining == draining:
        return False
    DatabaseStore().set_draining(service_id, draining=draining)
    before, after = {"draining": not draining}, {"draining": draining}
    audit(actor, "drain" if draining else "undrain", "service", service_id, before=before, after=after)
    return True


def _key_of(queue: Queue, spread: Spread) -> str:
    """What its partitions share in their names, in this cluster."""
    names, layout = {str(info) for info in queue.partition_infos()}, spread.layout
    place = next((place for place, name in enumerate(layout.names) if name in names), None)
    if place is None:
        raise InvalidInput(f"no partition of queue {queue.name} is known to the cluster yet; start a consumer host")
    return queue_key(replace(layout.queues[0].like, name=layout.names[place], number=layout.numbers[place]))


def _checked_reason(reason: str) -> str:
    reason = reason.strip()
    if not 1 <= len(reason) <= LONGEST_REASON or "\0" in reason:
        raise InvalidInput(
            f"say in 1 to {LONGEST_REASON} characters why: whoever sees partitions move wants to know; "
            f"{len(reason)} were given"
        )
    return reason


def _summary(leaving: Sequence[str]) -> str:
    return f"Rebalance without {named_services(leaving)}"[:200] if leaving else "Rebalance"
