"""Pauses: what may stand still, who said so, and that it is said once."""

import pytest
from django.db import IntegrityError, transaction

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.errors import InvalidInput
from queueapi.models import AuditEntry, Pause

pytestmark = pytest.mark.usefixtures("database")

OPERATOR = Actor("ada")
OTHER = Actor("bob")


def test_a_pause_is_of_the_queue_a_tenant_or_a_partition(installation) -> None:
    queue, tenant = installation.queue, installation.tenant
    whole = pause_queue(OPERATOR, queue, reason="billing is away")
    one_tenant = pause_queue(OPERATOR, queue, tenant=tenant, reason="too noisy")
    partition = pause_queue(OPERATOR, queue, partition=2, reason="poison")
    assert [pause.what for pause in (whole, one_tenant, partition)] == [
        "everything",
        "tenant Greenhouse",
        "partition 2",
    ]
    assert str(partition) == "partition 2 of Telemetry: poison"
    assert queue.pauses.count() == 3


def test_pausing_twice_changes_nothing(installation) -> None:
    for partition in (None, 1):
        first = pause_queue(OPERATOR, installation.queue, partition=partition, reason="billing is away")
        again = pause_queue(OTHER, installation.queue, partition=partition, reason="me too")
        assert (again.pk, again.reason, again.paused_by) == (first.pk, "billing is away", "ada")
    assert AuditEntry.objects.filter(action="pause").count() == 2


def test_resuming_lifts_exactly_that_pause(installation) -> None:
    queue, tenant = installation.queue, installation.tenant
    pause_queue(OPERATOR, queue, reason="a")
    pause_queue(OPERATOR, queue, tenant=tenant, reason="b")
    assert resume_queue(OTHER, queue)
    assert not resume_queue(OTHER, queue)
    [left] = queue.pauses.all()
    assert left.tenant == tenant
    entry = AuditEntry.objects.get(action="resume")
    assert (entry.actor_name, entry.before["reason"], entry.before["paused_by"]) == ("bob", "a", "ada")


@pytest.mark.parametrize("partition", [-1, 3])
def test_a_partition_that_is_not_there_is_refused(installation, partition) -> None:
    with pytest.raises(InvalidInput, match="name one from 0 to 2"):
        pause_queue(OPERATOR, installation.queue, partition=partition, reason="x")


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_whoever_finds_it_paused_wants_to_know_why(installation, reason) -> None:
    with pytest.raises(InvalidInput, match="say in 1 to 500 characters why"):
        pause_queue(OPERATOR, installation.queue, reason=reason)


def test_a_tenant_whose_messages_the_queue_never_has_is_refused(installation) -> None:
    own = create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log")
    with pytest.raises(InvalidInput, match="has no messages of tenant Other"):
        pause_queue(OPERATOR, own, tenant=create_tenant(SYSTEM, "Other"), reason="x")
    with pytest.raises(InvalidInput, match="not of both"):
        pause_queue(OPERATOR, own, tenant=installation.tenant, partition=0, reason="x")


def test_the_database_itself_holds_each_pause_once(installation) -> None:
    queue, tenant = installation.queue, installation.tenant
    for what in ({}, {"tenant": tenant}, {"partition": 0}):
        Pause.objects.create(queue=queue, reason="a", paused_by="ada", **what)
        with pytest.raises(IntegrityError), transaction.atomic():
            Pause.objects.create(queue=queue, reason="b", paused_by="bob", **what)
    with pytest.raises(IntegrityError), transaction.atomic():
        Pause.objects.create(queue=queue, reason="c", paused_by="bob", tenant=tenant, partition=1)
