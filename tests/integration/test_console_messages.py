"""A queue's messages and groups in the browser: looked for, and set to another place after the plan."""

import json
import re
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.messages import publish_message
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import Role
from queueapi.models import AuditEntry, Queue
from queueapi.plans import whole_queue_group
from queueapi.runtime import close_provider
from queuecore.testing.waiting import wait_until
from tests.page_forms import fields_of
from tests.people import person

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


@pytest.fixture
def queue(transactional_db: None) -> Iterator[Queue]:
    topic = f"console_{uuid4().hex[:8]}"
    yield create_queue(SYSTEM, ensure_system_tenant(), name=topic, topic=topic, handler="log", partitions=2)
    close_provider()


def text_of(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def publish(queue: Queue, entity: UUID, *numbers: int) -> int:
    """Where they are: the partition."""
    stored = [
        publish_message(queue, queue.tenant, entity, json.dumps({"number": number, "text": HOSTILE}).encode())
        for number in numbers
    ]
    return stored[-1].partition


def numbers_shown(browser: Client, queue: Queue, **asked: str) -> list[int]:
    page = browser.get(reverse("queue_messages", args=[queue.pk]), asked).content.decode()
    return [int(number) for number in re.findall(r"&quot;number&quot;: (\d+), &quot;text", page)]


def test_a_queue_without_messages_says_so(browser, queue) -> None:
    assert "The queue holds no messages." in text_of(browser.get(reverse("queue_messages", args=[queue.pk])))


def test_messages_are_shown_newest_first_decoded_and_harmless(browser, queue) -> None:
    publish(queue, uuid4(), *range(3))
    answer = browser.get(reverse("queue_messages", args=[queue.pk]))
    assert numbers_shown(browser, queue) == [2, 1, 0]
    assert numbers_shown(browser, queue, order="oldest") == [0, 1, 2]
    assert HOSTILE not in answer.content.decode()
    assert "3 messages looked at 3 messages" in text_of(answer)
    assert "producerId" in text_of(answer)


def test_messages_are_found_by_entity_partition_and_offset(browser, queue) -> None:
    entity, other = uuid4(), uuid4()
    partition = str(publish(queue, entity, 0, 1, 2))
    publish(queue, other, 7)
    assert numbers_shown(browser, queue, entity=str(entity)) == [2, 1, 0]
    assert set(numbers_shown(browser, queue, partition=partition, offset="1", order="oldest")) >= {1, 2}
    assert 0 not in numbers_shown(browser, queue, partition=partition, offset="1", order="oldest")
    assert numbers_shown(browser, queue, until="2020-01-01T00:00") == []
    assert len(numbers_shown(browser, queue, since="2020-01-01T00:00")) == 4


def test_messages_are_found_by_tenant_and_by_what_is_in_them(browser, queue) -> None:
    other = create_tenant(SYSTEM, "Acme")
    publish(queue, uuid4(), *range(3))
    publish_message(queue, other, uuid4(), json.dumps({"number": 3, "text": "Of ACME"}).encode())
    assert numbers_shown(browser, queue, tenant="acme") == [3]
    assert numbers_shown(browser, queue, tenant=str(other.pk), text="of acme") == [3]
    assert numbers_shown(browser, queue, text='"number": 1') == [1]
    assert numbers_shown(browser, queue, text="of acme", tenant=str(queue.tenant_id)) == []
    shown = text_of(browser.get(reverse("queue_messages", args=[queue.pk]), {"text": "nowhere"}))
    assert "0 messages looked at 4 messages" in shown
    assert "No message matches." in shown


def test_what_was_published_last_narrows_nothing(browser, queue) -> None:
    other, entity = create_tenant(SYSTEM, "Acme"), uuid4()
    publish(queue, uuid4(), 0)
    typed = {"tenant": str(other.pk), "entity": str(entity), "form": "text", "payload": "hello"}
    after = browser.post(reverse("queue_messages", args=[queue.pk]), typed, follow=True)
    assert "2 messages looked at 2 messages" in text_of(after)
    assert re.search(rf'<option value="{other.pk}" selected>', after.content.decode())
    assert f'value="{entity}"' in after.content.decode()


def test_a_search_goes_on_where_it_ended(browser, queue) -> None:
    publish(queue, uuid4(), *range(30))
    page = browser.get(reverse("queue_messages", args=[queue.pk]), {"limit": "20"}).content.decode()
    [further] = re.findall(r'href="(\?[^"]*cursor=[^"]+)">Go on from there', page)
    rest = browser.get(reverse("queue_messages", args=[queue.pk]) + further.replace("&amp;", "&")).content.decode()
    assert re.findall(r"&quot;number&quot;: (\d+), &quot;text", rest) == [str(number) for number in range(9, -1, -1)]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"offset": "1"}, "An offset is of one partition: name it as well."),
        ({"partition": "9"}, "Select a valid choice."),
        ({"entity": "nobody"}, "Enter a valid UUID."),
        ({"tenant": "nobody"}, "There is no tenant"),
        ({"cursor": "nonsense"}, "Where to go on could not be read: begin anew."),
        ({"since": "0001-01-01T00:00:00+12:00"}, "Enter a time of the years 1970 to 9998."),
        ({"shown": "protobuf"}, "nobody said which message queue"),
    ],
)
def test_what_cannot_be_looked_for_is_said(browser, queue, asked, told) -> None:
    assert told in text_of(browser.get(reverse("queue_messages", args=[queue.pk]), asked))


def group_of(queue: Queue, partition: int) -> str:
    return f"{whole_queue_group(queue)}-{partition}"


def commit(queue: Queue, partition: int, offset: int) -> None:
    place = queue.partition_info(partition).place
    runtime.provider().admin().alter_group_offsets(group_of(queue, partition), {place: offset})


def committed(queue: Queue, partition: int) -> int | None:
    group = group_of(queue, partition)
    return runtime.provider().admin().committed_offsets({group: None})[group].get(queue.partition_info(partition).place)


def planned(answer: HttpResponse) -> dict[str, str]:
    """What the plan's page sends."""
    return fields_of(answer.content.decode(), 'name="token"')


def test_groups_are_shown_as_the_provider_has_them(browser, queue) -> None:
    partition = publish(queue, uuid4(), *range(5))
    commit(queue, partition, 2)
    shown = text_of(browser.get(reverse("queue_groups", args=[queue.pk])))
    assert "2 consumer groups" in shown
    assert re.search(rf"{re.escape(group_of(queue, partition))} Nobody reads .* 2 5 3 . Set offsets", shown)
    assert "Not seen yet" in shown


def test_offsets_are_set_after_the_plan_and_only_as_shown(browser, queue) -> None:
    partition = publish(queue, uuid4(), *range(5))
    commit(queue, partition, 2)
    url = reverse("reset_offsets", args=[queue.pk, group_of(queue, partition)])
    plan = browser.get(url, {"to": "offset", "offset": "4"})
    assert re.search(r"2 4 2 0 0 5", text_of(plan))
    [token] = re.findall(r'name="token" value="(\w+)"', plan.content.decode())
    assert committed(queue, partition) == 2

    commit(queue, partition, 3)
    typed = {"to": "offset", "offset": "4", "token": token, "confirm": "yes"}
    assert "It is not what was shown any more" in text_of(browser.post(url, typed))
    assert committed(queue, partition) == 3

    [token] = re.findall(r'name="token" value="(\w+)"', browser.get(url, {"to": "earliest"}).content.decode())
    browser.post(url, {"to": "earliest", "token": token, "confirm": "yes"})
    assert committed(queue, partition) == 0
    entry = AuditEntry.objects.get(action="reset_offsets")
    assert (entry.actor_name, list(entry.after["offsets"].values())) == ("root", [0])


def test_the_last_minutes_are_those_that_the_plan_showed(browser, queue) -> None:
    """However long somebody looks at it: counted anew they would be others, and no plan would ever be confirmed."""
    partition = publish(queue, uuid4(), *range(5))
    commit(queue, partition, 4)
    url = reverse("reset_offsets", args=[queue.pk, group_of(queue, partition)])
    plan = browser.get(url, {"to": "ago", "minutes": "5"})
    assert re.search(r"4 0 0 4 0 5", text_of(plan))
    sent = planned(plan)
    assert (sent["to"], sent["minutes"]) == ("ago", "5")
    wait_until(lambda: planned(browser.get(url, {"to": "ago", "minutes": "5"}))["token"] != sent["token"])

    answer = browser.post(url, {**sent, "confirm": "yes"})
    assert answer.status_code == 302, text_of(answer)
    assert committed(queue, partition) == 0


def test_minutes_count_from_when_they_were_asked_for_after_a_refusal_too(browser, queue) -> None:
    partition = publish(queue, uuid4(), *range(5))
    commit(queue, partition, 4)
    url = reverse("reset_offsets", args=[queue.pk, group_of(queue, partition)])
    sent = planned(browser.get(url, {"to": "ago", "minutes": "5"}))
    commit(queue, partition, 3)
    anew = browser.post(url, {**sent, "confirm": "yes"})
    assert "It is not what was shown any more" in text_of(anew)
    assert planned(anew)["asked_at_ms"] == sent["asked_at_ms"]
    assert browser.post(url, {**planned(anew), "confirm": "yes"}).status_code == 302
    assert committed(queue, partition) == 0


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"to": "offset"}, "Enter it, or choose another place to go on from."),
        ({"to": "shift", "count": "1"}, "has committed nothing"),
        ({"to": "nowhere"}, "Select a valid choice."),
        ({"to": "time", "time": "9999-12-31T23:59:59-12:00"}, "Enter a time of the years 1970 to 9998."),
    ],
)
def test_what_cannot_be_set_is_said(browser, queue, asked, told) -> None:
    url = reverse("reset_offsets", args=[queue.pk, group_of(queue, 0)])
    assert told in text_of(browser.get(url, asked))


def test_groups_of_others_are_not_here(browser, queue) -> None:
    assert browser.get(reverse("reset_offsets", args=[queue.pk, "another"])).status_code == 404


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.TENANT_ADMIN])
def test_who_may_not_sets_and_publishes_nothing(client, queue, role) -> None:
    client.force_login(person("eve", role, queue.tenant if role.is_of_tenant else None))
    url = reverse("reset_offsets", args=[queue.pk, group_of(queue, 0)])
    assert client.post(url, {"to": "earliest", "confirm": "yes"}).status_code == 403
    assert client.post(reverse("queue_messages", args=[queue.pk]), {}).status_code == 403
    assert client.get(reverse("queue_messages", args=[queue.pk])).status_code == (403 if role.is_of_tenant else 200)
