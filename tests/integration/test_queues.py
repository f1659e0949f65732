"""Queues: what they may be called, whose messages they take, how they are sampled."""

from uuid import uuid4

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.messages import publish_message
from queueapi.actions.queues import create_queue, provision_queue
from queueapi.actions.tenants import create_tenant
from queueapi.errors import InvalidInput
from queueapi.models import Queue
from queuecore.errors import InvalidName
from workers.host import consumed_partitions
from workers.sampling import publish_samples


@pytest.mark.parametrize("name", ["", ".", "..", "Ä", "a b", "a/b", "a\n", "a\0", "x" * 101])
def test_a_name_no_group_could_hold_is_refused_with_what_to_enter(installation, name) -> None:
    with pytest.raises(InvalidName, match="enter 1 to 100 ASCII letters, digits"):
        create_queue(SYSTEM, installation.tenant, name=name, topic="other", handler="noop")


@pytest.mark.parametrize("name", ["Main", "a.b_c-1", "...", "x" * 100])
def test_ordinary_names_are_taken(installation, name) -> None:
    assert create_queue(SYSTEM, installation.tenant, name=name, topic="other", handler="noop").name == name


def test_a_tenants_queue_takes_no_message_of_another(installation) -> None:
    queue = create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="noop")
    other = create_tenant(SYSTEM, "Other")
    with pytest.raises(InvalidInput, match=f"tenant {installation.tenant.id} alone"):
        publish_message(queue, other, uuid4(), b"")
    assert publish_message(queue, installation.tenant, uuid4(), b"").offset == 0
    assert publish_message(installation.queue, other, uuid4(), b"").offset == 0


def test_queues_whose_groups_are_called_the_same_are_both_sampled(installation) -> None:
    for number, name in enumerate(["Ä", "ä"]):
        tenant, topic = installation.queue.tenant, f"twin_{number}"
        provision_queue(Queue.objects.create(tenant=tenant, name=name, topic=topic, handler="noop", partitions=2))
    assert publish_samples(runtime.provider(), "sampler") == 3 + 2 + 2


def test_a_topic_that_is_missing_keeps_no_other_from_being_sampled(installation, caplog) -> None:
    queue = create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="noop", partitions=2)
    [first, second] = [spec.info.place for spec in consumed_partitions(queue)]
    runtime.provider().admin().delete_topics([first.topic])
    assert publish_samples(runtime.provider(), "sampler") == 3 + 1
    [warning] = [one.getMessage() for one in caplog.records if one.name == "workers.sampling"]
    assert warning.startswith("1 partition(s) are not sampled")
    assert str(first) in warning
    assert str(second) not in warning
