"""Sample tenants and their queue. Repeatable."""

from queueapi.actions.actor import Actor
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.models import Queue, Tenant

_DEMO = Actor("demo")
TENANTS = ("Greenhouse Ltd", "Noisy Neighbour Inc")


def seed() -> tuple[Queue, list[Tenant]]:
    tenants = [_tenant(name) for name in TENANTS]
    system = ensure_system_tenant()
    queue = Queue.objects.filter(tenant=system, name="Telemetry").first() or create_queue(
        _DEMO,
        system,
        name="Telemetry",
        topic="tb_rule_engine.telemetry",
        handler="demo.telemetry",
        retries=2,
        retry_pause_ms=100,
        max_retry_pause_ms=400,
    )
    return queue, tenants


def _tenant(name: str) -> Tenant:
    return Tenant.objects.filter(name=name).first() or create_tenant(_DEMO, name)
