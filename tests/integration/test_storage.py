"""What tenants have stored is part of their usage, and changes nothing else of it."""

from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.storage import record_storage
from queueapi.actions.tenants import create_tenant
from queueapi.models import Queue, TenantUsageDay
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.sending import send_and_wait
from queuecore.topics import SYSTEM_TENANT

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_own_queues_hold_is_noted_beside_what_was_used(installation) -> None:
    tenant, today = installation.tenant, timezone.now().date()
    queue = Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log", partitions=2)
    admin, producer = runtime.provider().admin(), runtime.provider().producer()
    # One of its topics is not there yet.
    admin.create_topics([TopicSpec(queue.partition_info(0).full_topic_name)])
    TenantUsageDay.objects.create(tenant_id=tenant.id, day=today, sent=7)

    sizes = []
    for _ in range(2):
        send_and_wait(producer, queue.partition_info(0), QueueMessage(None, bytes(1_000)), 30)
        record_storage(admin, today)
        row = TenantUsageDay.objects.get(tenant_id=tenant.id)
        assert row.sent == 7
        sizes.append(row.stored_bytes)
    assert 1_000 <= sizes[0] < sizes[1]


def test_queues_that_all_share_are_nobodys_storage(installation) -> None:
    """Nor is it said that nothing is stored."""
    assert installation.queue.tenant_id == SYSTEM_TENANT
    used = TenantUsageDay.objects.create(tenant_id=installation.tenant.id, day=timezone.now().date(), sent=7)
    assert record_storage(runtime.provider().admin(), used.day) == 0
    assert TenantUsageDay.objects.get().stored_bytes is None


def test_a_day_of_who_has_no_queues_forgets_a_size_that_nobody_noted(installation) -> None:
    owner, other, today = installation.tenant, create_tenant(SYSTEM, "Foundry"), timezone.now().date()
    Queue.objects.create(tenant=owner, name="Own", topic="own", handler="log")
    for tenant in (owner, other):
        TenantUsageDay.objects.create(tenant_id=tenant.id, day=today, stored_bytes=0)
    import_module("queueapi.migrations.0028_storage_unknown").forget_what_nobody_noted(apps, None)
    sizes = dict(TenantUsageDay.objects.values_list("tenant_id", "stored_bytes"))
    assert sizes == {owner.id: 0, other.id: None}
