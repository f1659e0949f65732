"""What is running: hosts announce themselves, the supervisor tells about its children."""

from datetime import timedelta

from django.utils import timezone

from queueapi.choices import ProcessState
from queueapi.models import ManagedProcess, ServiceInstance
from queuecore.topics import ServiceType

LEASE = timedelta(seconds=15)
FORGET_AFTER = timedelta(hours=1)


def renew_lease(service_id: str, host: str, pid: int, partitions: int) -> None:
    """Announce a consumer host, or say that it is still there."""
    now = timezone.now()
    ServiceInstance.objects.update_or_create(
        service_id=service_id,
        defaults={"heartbeat_at": now, "lease_expires_at": now + LEASE, "partitions": partitions},
        create_defaults={
            "service_types": [kind.value for kind in ServiceType],
            "host": host,
            "pid": pid,
            "partitions": partitions,
            "started_at": now,
            "heartbeat_at": now,
            "lease_expires_at": now + LEASE,
        },
    )


def leave(service_id: str) -> None:
    """A host went away on its own; also forget those that have been dead for long."""
    ServiceInstance.objects.filter(service_id=service_id).delete()
    ServiceInstance.objects.filter(lease_expires_at__lt=timezone.now() - FORGET_AFTER).delete()


def record_process(
    name: str, state: ProcessState, *, pid: int | None = None, restarts: int = 0, last_exit: str = ""
) -> None:
    """What the supervisor sees of one child."""
    ManagedProcess.objects.update_or_create(
        name=name,
        defaults={
            "state": state,
            "pid": pid,
            "restarts": restarts,
            "last_exit": last_exit[:200],
            "changed_at": timezone.now(),
        },
    )


def forget_processes_except(names: list[str]) -> None:
    """Children of an earlier start that this one does not have."""
    ManagedProcess.objects.exclude(name__in=names).delete()
