"""Service instances without a process behind them."""

from queueapi.cluster.models import ServiceInstance
from queueapi.cluster.store import DatabaseStore
from queueapi.selectors.services import services
from queuecore.cluster.services import ServiceInfo


def announce(service_id: str = "host-1", *, lease_s: float = 10) -> ServiceInstance:
    """One that is there, or whose lease is over if that is negative."""
    DatabaseStore().join(ServiceInfo(service_id), host="localhost", pid=1, lease_s=lease_s)
    return ServiceInstance.objects.get(service_id=service_id)


def partitions_of(service_id: str) -> int:
    """How many it has; -1 where it is not there."""
    row = services().filter(service_id=service_id, gone_at__isnull=True).first()
    return -1 if row is None else row.partitions
