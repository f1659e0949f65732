"""All partitions of a queue as a list: sorted, narrowed and paged, for those who run the system and for a tenant."""

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.tenants import ensure_system_tenant
from queueapi.choices import LagStatus, Role
from queueapi.cluster.models import Partition, ServiceInstance
from queueapi.models import LagCurrent, Queue, Tenant
from tests.console_pages import queries_of
from tests.people import person

pytestmark = pytest.mark.django_db

PARTITIONS = 130


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(person("root", Role.OPERATOR))
    return client


@pytest.fixture
def queue() -> Queue:
    """The first two are a's, the third nobody's; the last but one is stuck, and the last is furthest behind."""
    queue = Queue.objects.create(
        tenant=ensure_system_tenant(), name="Wide", topic="wide", handler="log", partitions=PARTITIONS
    )
    make_samples(queue)
    make_service("a")
    told = {"service_type": queue.service_type, "queue": queue.name, "tenant": queue.tenant_id}
    for number, owner in enumerate(("a", "a", None)):
        name = queue.partition_info(number).full_topic_name
        epoch = number + 1 if owner else 0
        Partition.objects.create(name=name, number=number, owner=owner, target=owner, epoch=epoch, **told)
    return queue


def make_samples(queue: Queue) -> None:
    now = timezone.now()
    stuck = PARTITIONS - 2
    LagCurrent.objects.bulk_create(
        LagCurrent(
            queue=queue, partition=number, topic=f"{queue.topic}.{number}", consumer_group="c", end_offset=1_000,
            committed_offset=900, lag_messages=number, lag_seconds=float(number), as_of=now,
            status=LagStatus.STALL if number == stuck else LagStatus.OK, reason="OK: all is well",
        )
        for number in range(PARTITIONS)
    )  # fmt: skip


def make_service(name: str) -> None:
    now = timezone.now()
    times = {"started_at": now, "heartbeat_at": now, "lease_expires_at": now + timedelta(hours=1)}
    ServiceInstance.objects.create(service_id=name, incarnation="1", service_types=[], host="h", pid=1, **times)


def listed(browser: Client, queue: Queue, **asked: Any) -> list[int]:
    page = browser.get(reverse("queue_partitions", args=[queue.pk]), asked).context["page"]
    return [row.sample.partition for row in page.object_list]


def test_each_partition_is_on_a_page(browser, queue) -> None:
    assert listed(browser, queue) == list(range(25))
    assert listed(browser, queue, size=100, page=2) == list(range(100, PARTITIONS))
    page = browser.get(reverse("queue_partitions", args=[queue.pk])).content.decode()
    [current] = re.findall(r'<a href="([^"]+)" data-go="." aria-current="page"', page)
    assert current == reverse("queues")
    page = browser.get(reverse("queue", args=[queue.pk])).content.decode()
    assert f'id="all-partitions" href="{reverse("queue_partitions", args=[queue.pk])}"' in page


def test_partitions_are_sorted(browser, queue) -> None:
    assert listed(browser, queue, sort="-lag")[:2] == [PARTITIONS - 1, PARTITIONS - 2]
    assert listed(browser, queue, sort="-status")[0] == PARTITIONS - 2
    assert listed(browser, queue, sort="seconds")[:2] == [0, 1]


def test_partitions_are_narrowed_by_number_status_and_owner(browser, queue) -> None:
    assert listed(browser, queue, number=117) == [117]
    assert listed(browser, queue, number=0) == [0]
    assert listed(browser, queue, status="stall") == [PARTITIONS - 2]
    assert listed(browser, queue, owner="a") == [0, 1]
    assert listed(browser, queue, owner="-") == [2]
    assert listed(browser, queue, owner="a", number=9) == []
    for odd in ("1e99", "-1", "9" * 40):
        assert browser.get(reverse("queue_partitions", args=[queue.pk]), {"number": odd}).status_code == 200


def test_a_partition_tells_who_has_it_and_how_far_it_is(browser, queue) -> None:
    page = browser.get(reverse("queue_partitions", args=[queue.pk]), {"number": 1}).content.decode()
    assert f'href="{reverse("partitions")}?owner=a"' in page
    for told in (">1,000</td>", ">900</td>"):
        assert told in page


def test_the_list_asks_as_often_however_many_there_are(browser, queue) -> None:
    address = reverse("queue_partitions", args=[queue.pk])
    for asked in ({"size": 100}, {"owner": "a", "sort": "-status"}):
        assert queries_of(lambda asked=asked: browser.get(address, asked)) <= 15


def test_a_tenants_people_see_partitions_without_services(queue) -> None:
    tenant = Tenant.objects.create(name="Acme")
    client = Client()
    client.force_login(person("eve", Role.TENANT_VIEWER, tenant))
    assert listed(client, queue, number=117) == [117]
    # There is nothing that would tell which are whose.
    assert len(listed(client, queue, owner="a", size=100)) == 100
    page = client.get(reverse("queue_partitions", args=[queue.pk])).content.decode()
    for untold in ("Owner", "owner=a", "End offset"):
        assert untold not in page
    page = client.get(reverse("queue", args=[queue.pk])).content.decode()
    assert f'id="all-partitions" href="{reverse("queue_partitions", args=[queue.pk])}"' in page
    other = Queue.objects.create(
        tenant=Tenant.objects.create(name="Other"), name="Theirs", topic="theirs", handler="log"
    )
    assert client.get(reverse("queue_partitions", args=[other.pk])).status_code == 404
    assert client.get(reverse("queue_partitions", args=[uuid4()])).status_code == 404
