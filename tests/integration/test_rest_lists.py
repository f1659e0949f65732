"""Lists ask the database as often for many rows as for few, and never more often than ten times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pytest
from django.utils import timezone

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.isolation import comment_on_request, request_isolation
from queueapi.actions.message_types import Description, create_message_type
from queueapi.actions.messages import publish_message
from queueapi.actions.pauses import pause_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenant_profiles import create_profile
from queueapi.actions.tenants import create_tenant
from queueapi.choices import Role
from queueapi.cluster.models import Rebalance
from queueapi.models import (
    AlertDelivery,
    AlertNotice,
    ConsumerStanding,
    LagCurrent,
    Operation,
    QuarantinedLetter,
    Queue,
    RequestCurrent,
    RequestStats,
    TenantUsageDay,
)
from queuecore.providers.base import TopicSpec
from tests.alerts import make_alert, make_channel, make_rule, make_silence
from tests.cluster_kit import FakeCluster, partitions_named
from tests.databases import all_queries
from tests.integration.replay_kit import ran
from tests.letters import make_letter, make_letters
from tests.people import person, token_of
from tests.rest_kit import SOURCE, Caller, World, lists

MOST_QUERIES: Final = 10
FEW, MANY = 2, 9


@dataclass(frozen=True)
class ListOf:
    """How often a page asks, who asks included, and what makes so many rows of it."""

    queries: int
    rows: Callable[[World, int], object]


def _profiles(_: World, count: int) -> None:
    for number in range(count):
        create_tenant(SYSTEM, f"Tenant {number}", profile=create_profile(SYSTEM, name=f"profile {number}"))


def _tokens(_: World, count: int) -> None:
    for number in range(count):
        token_of(person(f"ada.{number}", Role.OPERATOR), ["queues:read"])


def _queues(world: World, count: int) -> None:
    for number in range(count):
        tenant = create_tenant(SYSTEM, f"Tenant {number}")
        queue = Queue.objects.create(tenant=tenant, name=f"Own{number}", topic="own", handler="log")
        queue.operation = Operation.objects.create(kind="count", summary="Count", total=1)
        queue.save()
        pause_queue(SYSTEM, queue, reason="billing is away")


def _isolations(world: World, count: int) -> None:
    for number in range(count):
        request = request_isolation(SYSTEM, create_tenant(SYSTEM, f"Tenant {number}"), world.asked, "bursts")
        comment_on_request(SYSTEM, request, "why?")


def _topics(_: World, count: int) -> None:
    runtime.provider().admin().create_topics([TopicSpec(f"other{number}") for number in range(count)])


def _groups(world: World, count: int) -> None:
    place = world.queue.partition_info(0).place
    for number in range(count):
        runtime.provider().admin().alter_group_offsets(f"reports{number}", {place: 0})


def _message_types(_: World, count: int) -> None:
    for number in range(count):
        description = Description.of({"order.proto": SOURCE})
        create_message_type(SYSTEM, name=f"order{number}", message="shop.Order", description=description)


def _messages(world: World, count: int) -> None:
    for _ in range(count):
        publish_message(world.queue, world.tenant, uuid4(), b"{}")


def _letters(world: World, count: int) -> None:
    for number in range(count):
        make_letter(world.queue, tenant=create_tenant(SYSTEM, f"Tenant {number}"), fingerprint=f"{number:016}")


def _quarantined(world: World, count: int) -> None:
    for number in range(count):
        place = {"letter_topic": "telemetry.dlq", "letter_partition": 0, "letter_offset": number}
        QuarantinedLetter.objects.create(queue=world.queue, error="no story", **place)


def _replays(world: World, count: int) -> None:
    for _ in range(count):
        ran(start_replay(SYSTEM, [make_letter(world.queue).id], target=world.queue))


def _items(world: World, count: int) -> None:
    world.__dict__["replay"] = start_replay(SYSTEM, make_letters(world.queue, count))


def _operations(_: World, count: int) -> None:
    for number in range(count):
        Operation.objects.create(kind="count", summary=f"Count {number}", total=1)


def _lag(world: World, count: int) -> None:
    told = {"consumer_group": "c", "end_offset": 2, "lag_messages": 1, "as_of": timezone.now()}
    for number in range(count):
        LagCurrent.objects.create(queue=world.queue, partition=number, topic=f"telemetry.{number}", **told)


def _queues_lag(world: World, count: int) -> None:
    _queues(world, count)
    told = {"topic": "own", "consumer_group": "c", "end_offset": 2, "lag_messages": 1, "as_of": timezone.now()}
    for queue in Queue.objects.all():
        LagCurrent.objects.bulk_create(LagCurrent(queue=queue, partition=number, **told) for number in range(count))


def _requests(_: World, count: int) -> None:
    now = timezone.now()
    for number in range(count):
        asked = {"service_id": f"shop-{number}", "request_topic": "prices"}
        RequestCurrent.objects.create(**asked, as_of=now)
        RequestStats.objects.create(**asked, at=now)


def _usage(_: World, count: int) -> None:
    for number in range(count):
        TenantUsageDay.objects.create(tenant_id=create_tenant(SYSTEM, f"Tenant {number}").pk, day=timezone.now().date())


def _alerts(world: World, count: int) -> None:
    for number in range(count):
        queue = Queue.objects.create(tenant=world.tenant, name=f"Own{number}", topic=f"own{number}", handler="log")
        make_alert(
            queue,
            make_rule(queue, channels=[make_channel()], escalation_channels=[make_channel()], escalate_after_s=60),
        )


def _channels(_: World, count: int) -> None:
    for _ in range(count):
        make_channel()


def _deliveries(world: World, count: int) -> None:
    for number in range(count):
        now = timezone.now()
        delivery = AlertDelivery.objects.create(channel=world.channel, created_at=now, due_at=now)
        alert = make_alert(world.queue, make_rule(world.queue, name=f"rule of delivery {number}"))
        AlertNotice.objects.create(delivery=delivery, alert=alert, channel=world.channel, kind="fired", told={})


def _silences(world: World, count: int) -> None:
    for _ in range(count):
        make_silence(world.queue, rule=make_rule(world.queue))


def _cluster(_: World, count: int) -> None:
    cluster = FakeCluster(partitions_named("Telemetry", "telemetry", count))
    cluster.join(*(f"service-{number}" for number in range(count)))
    cluster.settle()


def _rebalances(_: World, count: int) -> None:
    for number in range(count):
        done = {"state": "done", "finished_at": timezone.now(), "created_at": timezone.now()}
        Rebalance.objects.create(cause="manual", reason=f"disk {number}", **done)


def _consumers(world: World, count: int) -> None:
    _cluster(world, count)
    for number in range(count):
        told = {"service_id": f"service-{number}", "consumer_group": f"group-{number}", "partitions": [number]}
        now = timezone.now()
        ConsumerStanding.objects.create(queue=world.queue, state="running", since=now, as_of=now, **told)


FROZEN: Final[Mapping[str, ListOf]] = {
    "GET /tenants": ListOf(2, _profiles),
    "GET /tenant-profiles": ListOf(2, _profiles),
    "GET /isolation-requests": ListOf(3, _isolations),
    "GET /users": ListOf(2, _tokens),
    "GET /tokens": ListOf(2, _tokens),
    "GET /audit": ListOf(2, _profiles),
    "GET /topics": ListOf(2, _topics),
    "GET /groups": ListOf(2, _groups),
    "GET /message-types": ListOf(3, _message_types),
    "GET /queues": ListOf(3, _queues),
    "GET /queues/{queue}/consumers": ListOf(5, _consumers),
    "GET /queues/{queue}/messages": ListOf(4, _messages),
    "GET /dead-letters": ListOf(5, _letters),
    "GET /dead-letters/quarantined": ListOf(2, _quarantined),
    "GET /dead-letter-groups": ListOf(2, _letters),
    "GET /replays": ListOf(2, _replays),
    "GET /replays/{id}/items": ListOf(3, _items),
    "GET /operations": ListOf(2, _operations),
    "GET /lag": ListOf(2, _lag),
    "GET /lag/queues": ListOf(3, _queues_lag),
    "GET /pending-requests": ListOf(2, _requests),
    "GET /pending-requests/history": ListOf(2, _requests),
    "GET /usage": ListOf(2, _usage),
    "GET /usage/totals": ListOf(3, _usage),
    "GET /alerts": ListOf(2, _alerts),
    "GET /alert-rules": ListOf(4, _alerts),
    "GET /alert-channels": ListOf(2, _channels),
    "GET /alert-channels/{id}/deliveries": ListOf(3, _deliveries),
    "GET /silences": ListOf(2, _silences),
    "GET /services": ListOf(2, _cluster),
    "GET /partitions": ListOf(2, _cluster),
    "GET /rebalances": ListOf(2, _rebalances),
}


def test_every_list_has_its_line() -> None:
    assert sorted(lists()) == sorted(FROZEN)


@pytest.mark.parametrize("name", sorted(FROZEN))
@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_page_asks_as_often_however_many_rows_there_are(admin_api, installation, name, count) -> None:
    world = World(installation)
    FROZEN[name].rows(world, count)
    page = Caller(admin_api, name, world)
    answer, asked = _asked(page)
    rows = answer if isinstance(answer, list) else answer["results"]
    assert len(rows) >= count
    assert (len(asked), len(asked) <= MOST_QUERIES) == (FROZEN[name].queries, True), "\n".join(asked)


def _asked(page: Caller) -> tuple[list[object] | dict[str, list[object]], list[str]]:
    """What it answers with, and all that it asked, of either database."""
    with all_queries() as asked:
        answer = page()
    assert answer.status_code == 200, answer.content
    return answer.json(), asked
