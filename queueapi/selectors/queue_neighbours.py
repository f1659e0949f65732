"""What a queue has to do with others, and who keeps it from being consumed: read at once for its plans."""

from dataclasses import dataclass

from django.db.models import BooleanField, ExpressionWrapper, Q

from queueapi.models import Pause, Queue
from queueapi.selectors.consumers import pauses_of
from queuecore.topics import SYSTEM_TENANT


@dataclass(frozen=True, slots=True)
class Neighbours:
    """
    predecessors  queues that are drained or moved to it
    twin          the shared queue of its name, where it is a tenant's own; empty: there is none
    pauses        of it, its tenants and its partitions
    """

    predecessors: list[str]
    twin: str
    pauses: list[Pause]

    @property
    def returning(self) -> str:
        """The tenant whose messages just return to it from a queue of its own; empty: none."""
        names = [pause.tenant.name for pause in self.pauses if pause.operation_id is not None and pause.tenant]
        return min(names, default="")

    @property
    def paused(self) -> str:
        """In words; empty: nothing."""
        return ", ".join(pause.what for pause in self.pauses)


def neighbours_of(queue: Queue) -> Neighbours:
    precedes = Q(successor=queue)
    is_twin = Q(tenant=SYSTEM_TENANT, service_type=queue.service_type, name__iexact=queue.name)
    asked = precedes if queue.only_tenant_id is None else precedes | is_twin
    told = ExpressionWrapper(is_twin, output_field=BooleanField())
    rows = list(Queue.objects.filter(asked).order_by("name").values_list("name", "successor_id", told))
    twins = [name for name, _, is_twin in rows if is_twin and queue.only_tenant_id is not None]
    return Neighbours(
        predecessors=[name for name, successor, _ in rows if successor == queue.pk],
        twin=next(iter(twins), ""),
        pauses=list(pauses_of(queue)),
    )
