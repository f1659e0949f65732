"""Sample tenants and queues. Repeatable."""

from dataclasses import dataclass
from typing import Any, Final

from queueapi.actions.actor import Actor
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenant_profiles import create_profile
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.models import Queue, Tenant, TenantProfile
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType
from queuecore.topics import MAIN_QUEUE, SYSTEM_TENANT, ServiceType
from workers.demo.handlers import ALARM_QUEUE, ARCHIVE_QUEUE

CORE_QUEUE: Final = "Core"
WELL_BEHAVED: Final = ("Greenhouse Ltd", "Harbour Cold Store")
NOISY: Final = "Noisy Neighbour Inc"
METERED: Final = "metered"
# Of the noisy tenant: its steady readings pass, of its bursts a part.
NOISY_PER_S: Final = 25
NOISY_BURST_S: Final = 30

_DEMO: Final = Actor("demo")
# What a new installation gives its rule engine: the demo puts its own in that place, but in nobody else's.
_INITIAL_HANDLER: Final = "log"


@dataclass(frozen=True, slots=True)
class Sample:
    """What the demo works with."""

    core: Queue
    tenants: tuple[Tenant, ...]
    noisy: Tenant


def seed() -> Sample:
    _ensure_queue(ALARM_QUEUE, "tb_rule_engine.alarms", "log", partitions=1, handler_options={"preview_bytes": 200})
    _ensure_queue(
        ARCHIVE_QUEUE,
        "tb_rule_engine.archive",
        "demo.archive",
        partitions=2,
        submit_strategy=SubmitStrategyType.SEQUENTIAL,
        # A pack of readings that wait for an archive that is slow.
        pack_processing_timeout_ms=600_000,
    )
    _ensure_rule_engine()
    core = _ensure_queue(
        CORE_QUEUE,
        "tb_core",
        "demo.core",
        service_type=ServiceType.TB_CORE,
        submit_strategy=SubmitStrategyType.SEQUENTIAL_BY_ORIGINATOR,
        processing_strategy=ProcessingStrategyType.RETRY_FAILED_AND_TIMED_OUT,
        pack_processing_timeout_ms=10_000,
        retries=3,
        retry_pause_ms=100,
        max_retry_pause_ms=400,
    )
    tenants = tuple(_ensure_tenant(name) for name in WELL_BEHAVED)
    return Sample(core, tenants, _ensure_tenant(NOISY, profile=_ensure_metered()))


def _ensure_rule_engine() -> None:
    """Those that fail here become dead letters at once, and hold up nobody."""
    main = _ensure_queue(
        MAIN_QUEUE,
        "tb_rule_engine",
        "demo.rule_engine",
        submit_strategy=SubmitStrategyType.BURST,
        processing_strategy=ProcessingStrategyType.SKIP_ALL_FAILURES,
    )
    if main.handler == _INITIAL_HANDLER and not main.handler_options:
        change_queue(_DEMO, main, handler="demo.rule_engine")


def _ensure_queue(name: str, topic: str, handler: str, **options: Any) -> Queue:
    """The system's queue of that name, as it is; created so where there is none."""
    found = Queue.objects.filter(tenant_id=SYSTEM_TENANT, name=name).first()
    return found or create_queue(_DEMO, ensure_system_tenant(), name=name, topic=topic, handler=handler, **options)


def _ensure_metered() -> TenantProfile:
    found = TenantProfile.objects.filter(name=METERED).first()
    described = "Steady readings pass, of bursts a part"
    return found or create_profile(
        _DEMO, name=METERED, description=described, messages_per_s=NOISY_PER_S, burst_s=NOISY_BURST_S
    )


def _ensure_tenant(name: str, **fields: Any) -> Tenant:
    """As it is; created so where there is none."""
    return Tenant.objects.filter(name=name).first() or create_tenant(_DEMO, name, **fields)
