"""Quotas where messages are published: what passes, what is refused, and how soon a change is obeyed."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from queueapi import admission as process
from queueapi.actions.actor import SYSTEM
from queueapi.actions.message_batches import OutgoingMessage, publish_batch
from queueapi.actions.messages import publish_message
from queueapi.actions.queues import create_queue
from queueapi.actions.tenant_profiles import change_profile, create_profile
from queueapi.actions.tenant_states import resume_tenant, suspend_tenant
from queueapi.actions.tenants import change_tenant
from queueapi.admission import LOOK_EVERY_S, Admission, admission
from queueapi.errors import InvalidInput, TenantSuspended
from queueapi.models import Tenant, TenantProfile
from queuecore.errors import PayloadTooLarge, QueueOverloaded
from queuecore.testing.clock import ManualClock


@pytest.fixture
def clock(monkeypatch) -> ManualClock:
    """This process's admission goes by it."""
    clock = ManualClock()
    monkeypatch.setattr(process, "_process", Admission(clock))
    return clock


@pytest.fixture
def tenant(installation, clock) -> Tenant:
    return installation.tenant


def publish(installation, payload: bytes = b"x", **where) -> None:
    publish_message(where.get("queue", installation.queue), installation.tenant, uuid4(), payload)


def passed(installation, tries: int, payload: bytes = b"x") -> int:
    count = 0
    for _ in range(tries):
        try:
            publish(installation, payload)
        except QueueOverloaded:
            continue
        count += 1
    return count


def test_without_a_quota_everything_passes(installation, tenant) -> None:
    assert passed(installation, 50) == 50


def test_a_burst_passes_then_what_the_rate_allows(installation, tenant, clock) -> None:
    change_tenant(SYSTEM, tenant, messages_per_s=2, burst_s=3)
    assert passed(installation, 10) == 6
    clock.advance(1)
    assert passed(installation, 10) == 2
    clock.advance(60)
    assert passed(installation, 10) == 6


def test_who_is_refused_is_told_which_quota_and_when_to_come_again(installation, tenant, clock) -> None:
    change_tenant(SYSTEM, tenant, messages_per_s=2, burst_s=1)
    assert passed(installation, 2) == 2
    with pytest.raises(QueueOverloaded, match=r"Greenhouse publishes more than its quota messages_per_s of 2") as told:
        publish(installation)
    assert told.value.retry_after_s == pytest.approx(0.5)
    clock.advance(told.value.retry_after_s)
    publish(installation)


def test_bytes_are_limited_as_well_and_a_refused_message_costs_nothing(installation, tenant, clock) -> None:
    change_tenant(SYSTEM, tenant, bytes_per_s=100, messages_per_s=3, burst_s=1)
    assert passed(installation, 5, b"x" * 60) == 1
    assert passed(installation, 5, b"x" * 20) == 2
    clock.advance(1)
    assert passed(installation, 5, b"x" * 100) == 1


def test_a_message_that_never_fits_the_quota_is_too_large(installation, tenant) -> None:
    change_tenant(SYSTEM, tenant, bytes_per_s=100, burst_s=2)
    publish(installation, b"x" * 200)
    with pytest.raises(PayloadTooLarge, match=r"201 bytes, and tenant Greenhouse may publish 200 at once"):
        publish(installation, b"x" * 201)


def test_the_profiles_quota_holds_where_the_tenant_has_none(installation, tenant, clock) -> None:
    small = create_profile(SYSTEM, name="small", messages_per_s=1, burst_s=4)
    change_tenant(SYSTEM, tenant, profile=small)
    assert passed(installation, 10) == 4
    change_tenant(SYSTEM, tenant, messages_per_s=5, burst_s=1)
    assert passed(installation, 1) == 0
    clock.advance(10)
    assert passed(installation, 10) == 5


def test_a_change_here_is_obeyed_at_once_and_gives_no_second_burst(installation, tenant, clock) -> None:
    small = create_profile(SYSTEM, name="small", messages_per_s=2, burst_s=1)
    change_tenant(SYSTEM, tenant, profile=small)
    assert passed(installation, 5) == 2
    change_profile(SYSTEM, small, messages_per_s=4)
    assert passed(installation, 5) == 0
    clock.advance(1)
    assert passed(installation, 5) == 4
    change_profile(SYSTEM, small, messages_per_s=None)
    assert passed(installation, 5) == 5


def test_a_change_elsewhere_is_obeyed_within_seconds(installation, tenant, clock) -> None:
    publish(installation)
    Tenant.objects.filter(pk=tenant.pk).update(messages_per_s=1, burst_s=1)
    assert passed(installation, 3) == 3
    clock.advance(LOOK_EVERY_S)
    assert passed(installation, 3) == 1


def test_the_database_is_read_seldom_and_never_written(installation, tenant, clock) -> None:
    publish(installation)
    with CaptureQueriesContext(connection) as asked:
        assert passed(installation, 20) == 20
    assert [sql for sql in _asked(asked) if not sql.startswith(_IS_THERE)] == []
    clock.advance(LOOK_EVERY_S)
    with CaptureQueriesContext(connection) as asked:
        assert passed(installation, 20) == 20
    [limits] = [sql for sql in _asked(asked) if not sql.startswith(_IS_THERE)]
    assert limits.startswith("SELECT")


# Whether the queue is still there when its message is.
_IS_THERE = 'SELECT 1 AS "a" FROM "queueapi_queue"'


def _asked(context: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in context.captured_queries]


def test_what_is_known_holds_while_the_database_is_away(installation, tenant, clock, monkeypatch, caplog) -> None:
    def away(_: object) -> None:
        raise OperationalError("the server closed the connection")

    change_tenant(SYSTEM, tenant, messages_per_s=2, burst_s=1)
    assert passed(installation, 3) == 2
    monkeypatch.setattr(process, "read_limits", away)
    clock.advance(LOOK_EVERY_S)
    assert passed(installation, 3) == 2
    assert "quotas of tenant Greenhouse are as they were: the server closed the connection" in caplog.text
    with pytest.raises(OperationalError):
        publish_message(installation.queue, Tenant.objects.create(name="Unknown yet"), uuid4(), b"x")


def test_threads_share_a_tenants_quota(tenant, clock) -> None:
    change_tenant(SYSTEM, tenant, messages_per_s=10, burst_s=5)
    gate = admission()
    gate.admit(tenant.id, 1, to_own_queue=False)

    def tries(_: int) -> int:
        count = 0
        for _ in range(20):
            with suppress(QueueOverloaded):
                gate.admit(tenant.id, 1, to_own_queue=False)
                count += 1
        return count

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(tries, range(8))) == 49


def test_a_suspended_tenant_publishes_nothing_until_it_is_resumed(installation, tenant) -> None:
    publish(installation)
    suspend_tenant(SYSTEM, tenant, "invoice 4711 is unpaid")
    with pytest.raises(TenantSuspended, match=r"Greenhouse is suspended.*invoice 4711 is unpaid.*resumed first"):
        publish(installation)
    resume_tenant(SYSTEM, tenant)
    publish(installation)


def test_what_is_stored_in_own_queues_is_limited(installation, tenant, clock) -> None:
    own = create_queue(SYSTEM, tenant, name="Own", topic="own", handler="log", partitions=1)
    change_tenant(SYSTEM, tenant, stored_bytes=5_000)
    publish(installation, b"x" * 3_000, queue=own)
    with pytest.raises(QueueOverloaded, match="quota stored_bytes is 5,000") as told:
        publish(installation, b"x" * 3_000, queue=own)
    assert told.value.retry_after_s > 1
    publish(installation, b"x" * 3_000)
    clock.advance(LOOK_EVERY_S)
    with pytest.raises(QueueOverloaded):
        publish(installation, b"x" * 3_000, queue=own)
    change_tenant(SYSTEM, tenant, stored_bytes=50_000)
    publish(installation, b"x" * 3_000, queue=own)


def test_what_goes_to_a_shared_queue_takes_no_room_in_own_ones(installation, tenant, clock) -> None:
    own = create_queue(SYSTEM, tenant, name="Own", topic="own", handler="log", partitions=1)
    change_tenant(SYSTEM, tenant, stored_bytes=5_000)
    publish(installation, b"x" * 3_000)
    publish_batch(installation.queue, [OutgoingMessage(tenant.id, uuid4(), b"x" * 3_000)])
    publish(installation, b"x" * 3_000, queue=own)


def test_a_tenant_that_is_gone_publishes_nothing(installation, tenant) -> None:
    stranger = Tenant(name="Gone")
    with pytest.raises(InvalidInput, match="there is no tenant"):
        publish_message(installation.queue, stranger, uuid4(), b"x")


def test_one_tenants_quota_is_not_the_others(installation, tenant) -> None:
    change_tenant(SYSTEM, tenant, messages_per_s=1, burst_s=1)
    assert passed(installation, 3) == 1
    other = Tenant.objects.create(name="Other")
    for _ in range(3):
        publish_message(installation.queue, other, uuid4(), b"x")


def test_what_was_published_and_refused_is_counted(installation, tenant) -> None:
    change_tenant(SYSTEM, tenant, messages_per_s=3, burst_s=1)
    assert passed(installation, 5, b"12345") == 3
    suspend_tenant(SYSTEM, tenant, "unpaid")
    with pytest.raises(TenantSuspended):
        publish(installation)
    used = admission().usage(tenant.id)
    assert (used.messages, used.bytes, used.refused) == (3, 15, 3)
    assert admission().usage(uuid4()).messages == 0


def test_quotas_hold_on_both_databases(database, installation, clock) -> None:
    profile = TenantProfile.objects.create(name="small", messages_per_s=2, burst_s=1)
    change_tenant(SYSTEM, installation.tenant, profile=profile)
    assert passed(installation, 5) == 2
