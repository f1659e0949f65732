"""Payloads in the browser on queues with a message type: decoded, mended and published as what handlers expect."""

import html
import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from console.payloads import MAX_JSON_CHARACTERS, MAX_TEXT_BYTES, show_payload
from queueapi.actions.actor import SYSTEM
from queueapi.actions.letter_edits import edit_letter, message_of
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import Role
from queueapi.models import DeadLetter, DeadLetterEdit, Queue
from queueapi.runtime import close_provider
from queueapi.selectors.message_scans import MessageQuery, scan_messages
from queuecore.messages import QueueMessage
from tests.console_pages import queries_of
from tests.letters import make_letter
from tests.message_types import NEWER, SOURCE, form_of, make_type, nested
from tests.people import person

MOST_QUERIES = 15
ORDER = {"id": "a-7", "amount": "215"}
HOSTILE = [
    b"\xff" * 70_000,
    b"\x1a\x00" * 32_000,
    b"\x1a\x00" * 120_000,
    nested(60),
    nested(5_000),
    b"[" * 500 + b",".join([b"1"] * 30_000) + b"]" * 500,
    b'"\\ud800"',
    b"\n\x02\xff\xff",
    b"1" * 5_000,
]


@pytest.fixture
def queue(db: None) -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")


@pytest.fixture
def form(queue: Queue):
    """What the queue carries."""
    return make_type([queue.topic])


def text(answer: Any) -> str:
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def page_of(client: Client, letter: DeadLetter) -> str:
    return text(client.get(reverse("dead_letter", args=[letter.pk])))


def typed(client: Client, letter: DeadLetter, query: str = "", **changes: str) -> dict[str, str]:
    """What the form has, as a browser would send it."""
    context = client.get(reverse("edit_letter", args=[letter.pk]) + query).context
    shown = {name: context["form"][name].value() or "" for name in context["form"].fields}
    return {**shown, "seen": context["seen"], **changes}


def planned(client: Client, letter: DeadLetter, given: dict[str, str]) -> Any:
    return client.post(reverse("edit_letter", args=[letter.pk]), {**given, "plan": "yes"})


def save(client: Client, letter: DeadLetter, given: dict[str, str]) -> bytes:
    """The payload that a replay sends then."""
    told = {**given, "planned": planned(client, letter, given).context["planned"]}
    assert client.post(reverse("edit_letter", args=[letter.pk]), told).status_code == 302
    return bytes(DeadLetterEdit.objects.get(letter=letter).payload)


# A letter


def test_a_letter_is_shown_decoded_and_its_bytes_are_at_hand(admin_client, queue, form) -> None:
    page = page_of(admin_client, make_letter(queue, payload=form.from_json(ORDER)))
    assert "shop.Order, 8 B" in page
    assert '"amount": "215"' in page
    assert "00000000  0a 03 61 2d 37 10 d7 01" in page


def test_an_edited_payload_is_shown_decoded_as_well(admin_client, queue, form) -> None:
    letter = make_letter(queue, payload=form.from_json(ORDER))
    edit_letter(SYSTEM, letter.pk, QueueMessage(letter.key, form.from_json({"amount": 7}), {}))
    page = page_of(admin_client, letter)
    assert '"amount": "215"' in page
    assert '"amount": "7"' in page


def test_a_tenant_sees_its_own_letter_decoded(queue, form) -> None:
    tenant, client = create_tenant(SYSTEM, "Greenhouse"), Client()
    client.force_login(person("eve", Role.TENANT_ADMIN, tenant))
    letter = make_letter(queue, tenant=tenant, payload=form.from_json(ORDER))
    page = page_of(client, letter)
    assert "shop.Order, 8 B" in page
    assert '"amount": "215"' in page
    others = make_letter(queue, tenant=create_tenant(SYSTEM, "Foundry"), payload=form.from_json(ORDER))
    assert client.get(reverse("dead_letter", args=[others.pk])).status_code == 404


def test_without_a_message_type_nothing_is_said_of_one(admin_client, queue) -> None:
    page = page_of(admin_client, make_letter(queue, payload=form_of().from_json(ORDER)))
    assert "shop.Order" not in page
    assert "Its queue carries" not in page
    assert "bytes, 8 B" in page


@pytest.mark.parametrize(
    ("payload", "shown", "why"),
    [
        (b'{"temperature": 21.5}', '"temperature": 21.5', "the payload is not a shop.Order"),
        (b"\xff\x00", "ff 00", "the payload is not a shop.Order"),
        (b"h7", "h7", "the payload has none of the fields that shop.Order names"),
        (b"\n\x03a-7" * 20_000, "0a 03 61 2d 37", "the payload has 100000 bytes; up to 65536 are decoded here"),
    ],
)
def test_what_does_not_fit_is_shown_as_it_is_with_the_reason(admin_client, queue, form, payload, shown, why) -> None:
    page = page_of(admin_client, make_letter(queue, payload=payload))
    assert f"Its queue carries shop.Order, and it could not be decoded so: {why}" in page
    assert shown in page


def test_fields_that_the_type_does_not_name_are_told(admin_client, queue, form) -> None:
    page = page_of(admin_client, make_letter(queue, payload=form_of(NEWER).from_json({**ORDER, "note": "x"})))
    assert '"amount": "215"' in page
    assert "3 bytes of it are of fields that shop.Order does not name." in page


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("is_typed", [True, False])
def test_hostile_payloads_are_shown_and_mended_at_once(admin_client, queue, payload, is_typed) -> None:
    if is_typed:
        make_type([queue.topic])
    letter = make_letter(queue, payload=payload)
    before = message_of(letter)
    started = time.process_time()
    page = page_of(admin_client, letter)
    assert len(page) < 4 * MAX_JSON_CHARACTERS
    assert save(admin_client, letter, typed(admin_client, letter)) == before.data
    # Two seconds each would be far too long; without bounds some take minutes, or all memory.
    assert time.process_time() - started < 8


def test_json_that_is_endless_once_decoded_is_cut(form) -> None:
    payload = form.from_json({"parts": [{"parts": [{"parts": [{}] * 3}] * 100}] * 60})
    assert len(payload) < MAX_TEXT_BYTES
    shown = show_payload(payload, form)
    assert len(shown.text) == MAX_JSON_CHARACTERS
    assert shown.notes == (f"The first {MAX_JSON_CHARACTERS:,} characters of its JSON.",)


def test_pages_of_letters_ask_a_bounded_number_of_times(admin_client, queue) -> None:
    make_type([queue.topic], SOURCE.replace("amount", "total"))
    letter = make_letter(queue, payload=form_of().from_json(ORDER))
    for name in ("dead_letter", "edit_letter"):
        assert queries_of(lambda name=name: admin_client.get(reverse(name, args=[letter.pk]))) <= MOST_QUERIES


# Mending


def test_a_message_is_mended_by_its_fields(admin_client, queue, form) -> None:
    letter = make_letter(queue, payload=form.from_json(ORDER))
    given = typed(admin_client, letter)
    assert (given["form"], json.loads(given["payload"])) == ("protobuf", ORDER)
    given["payload"] = given["payload"].replace("215", "21")
    page = text(planned(admin_client, letter, given))
    assert 'removed: </span>  "amount": "215"' in page
    assert 'added: </span>  "amount": "21"' in page
    assert "base64" not in page.partition('id="plan"')[2].partition("</section>")[0]
    assert form.to_json(save(admin_client, letter, given)) == {"id": "a-7", "amount": "21"}


# Fields the other way round, and one that the type does not name.
@pytest.mark.parametrize("payload", [b"\x10\x07\n\x01a", b"\n\x01aJ\x01x", b"", b"\xff\x00", b'{"a":1,  "b": 2}'])
@pytest.mark.parametrize("query", ["", "?as=base64"])
def test_what_nobody_touched_is_sent_as_it_was_to_the_byte(admin_client, queue, form, payload, query) -> None:
    letter = make_letter(queue, payload=payload)
    given = typed(admin_client, letter, query, headers="unit: F")
    assert save(admin_client, letter, given) == payload


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ('{"amount": ', "This is not JSON"),
        ('{"amount": "many"}', "This is no shop.Order: "),
        ('{"colour": "red"}', 'no field named "colour"'),
        ("[1]", "A shop.Order is a JSON object; list was given."),
        ('{"parts": [' * 300 + "{}" + "]}" * 300, "This is no shop.Order: "),
        ("[" * 100_000, "This is not JSON"),
        ("1" * 5_000, "This is not JSON"),
        ('{"id": "\\ud800"}', "This is no shop.Order: "),
    ],
)
def test_what_does_not_fit_is_refused_at_the_field_and_kept(admin_client, queue, form, payload, told) -> None:
    letter = make_letter(queue, payload=form.from_json(ORDER))
    given = typed(admin_client, letter, payload=payload, reason="typed before")
    for button in ({"plan": "yes"}, {}):
        answer = admin_client.post(reverse("edit_letter", args=[letter.pk]), {**given, **button})
        [error] = answer.context["form"].errors["payload"]
        assert told in error
        assert len(error) < 500
        assert answer.context["form"]["payload"].value() == payload
        assert "typed before" in text(answer)
    assert not DeadLetterEdit.objects.exists()


def test_bytes_that_do_not_decode_can_be_mended_as_bytes_or_sent_as_the_type(admin_client, queue, form) -> None:
    letter = make_letter(queue, payload=b"\xff\x00")
    given = typed(admin_client, letter)
    assert given["form"] == "base64"
    assert "Its queue carries shop.Order, and it could not be decoded so" in text(
        admin_client.get(reverse("edit_letter", args=[letter.pk]))
    )
    assert save(admin_client, letter, {**given, "payload": "/wE="}) == b"\xff\x01"
    letter.refresh_from_db()
    again = typed(admin_client, letter, form="protobuf", payload=json.dumps(ORDER))
    assert form.to_json(save(admin_client, letter, again)) == ORDER


def test_the_same_json_in_another_form_is_not_called_the_same(admin_client, queue, form) -> None:
    letter = make_letter(queue, payload=json.dumps(ORDER).encode())
    given = typed(admin_client, letter)
    assert given["form"] == "json"
    page = text(planned(admin_client, letter, {**given, "form": "protobuf"}))
    assert "removed: </span>payload, JSON:" in page
    assert "added: </span>payload, shop.Order:" in page
    assert form.to_json(save(admin_client, letter, {**given, "form": "protobuf"})) == ORDER


def test_the_comparison_tells_of_fields_that_are_lost(admin_client, queue, form) -> None:
    letter = make_letter(queue, payload=form_of(NEWER).from_json({**ORDER, "note": "x"}))
    given = typed(admin_client, letter)
    page = text(planned(admin_client, letter, {**given, "payload": given["payload"].replace("215", "21")}))
    assert "removed: </span>3 bytes of it are of fields that shop.Order does not name." in page


def test_what_can_be_decoded_can_be_mended_as_bytes(admin_client, queue, form) -> None:
    letter = make_letter(queue, payload=form.from_json(ORDER))
    url = reverse("edit_letter", args=[letter.pk])
    assert 'href="?as=base64"' in text(admin_client.get(url))
    given = typed(admin_client, letter, "?as=base64")
    assert (given["form"], given["payload"].strip()) == ("base64", "CgNhLTcQ1wE=")
    assert typed(admin_client, letter, "?as=nonsense")["form"] == "protobuf"


def test_without_a_message_type_none_is_offered(admin_client, queue) -> None:
    letter = make_letter(queue)
    given = typed(admin_client, letter, form="protobuf")
    assert "form" in planned(admin_client, letter, given).context["form"].errors
    assert "protobuf" not in text(admin_client.get(reverse("edit_letter", args=[letter.pk])))


# Publishing


@pytest.fixture
def active(transactional_db: None) -> Iterator[Queue]:
    topic = f"console_{uuid4().hex[:8]}"
    yield create_queue(SYSTEM, ensure_system_tenant(), name=topic, topic=topic, handler="log", partitions=1)
    close_provider()


@pytest.fixture
def browser(transactional_db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="secret"))
    return client


def publish(browser: Client, queue: Queue, **given: str) -> Any:
    message = {"tenant": str(queue.tenant_id), "entity": str(uuid4()), **given}
    return browser.post(reverse("queue_messages", args=[queue.pk]), message)


def stored(queue: Queue) -> list[bytes]:
    return [record.data for _, record in scan_messages(queue, MessageQuery(limit=20)).found]


def test_publishing_begins_with_the_message_type_and_stores_it(browser, active) -> None:
    form = make_type([active.topic])
    page = browser.get(reverse("queue_messages", args=[active.pk]))
    offered = page.context["form"]["form"]
    assert (offered.value(), [value for value, _ in offered.field.choices]) == (
        "protobuf",
        ["protobuf", "json", "text"],
    )
    assert "The queue carries shop.Order" in text(page)
    assert publish(browser, active, form="protobuf", payload=json.dumps(ORDER)).status_code == 302
    assert [form.to_json(data) for data in stored(active)] == [ORDER]


def test_publishing_what_does_not_fit_is_refused_and_kept(browser, active) -> None:
    make_type([active.topic])
    answer = publish(browser, active, form="protobuf", payload='{"colour": "red"}')
    [error] = answer.context["form"].errors["payload"]
    assert error.startswith("This is no shop.Order: ")
    assert answer.context["form"]["payload"].value() == '{"colour": "red"}'
    assert stored(active) == []


def test_publishing_in_another_form_stores_what_was_typed(browser, active) -> None:
    make_type([active.topic])
    publish(browser, active, form="json", payload='{"colour":  "red"}')
    assert stored(active) == [b'{"colour":  "red"}']


def test_publishing_without_a_message_type_is_as_before(browser, active) -> None:
    page = browser.get(reverse("queue_messages", args=[active.pk]))
    assert page.context["form"]["form"].value() == "json"
    assert publish(browser, active, form="protobuf", payload="{}").context["form"].errors["form"]
    assert publish(browser, active, form="text", payload="two\r\nlines").status_code == 302
    assert stored(active) == [b"two\nlines"]


def test_the_page_of_messages_asks_a_bounded_number_of_times(browser, active) -> None:
    make_type([active.topic], SOURCE.replace("amount", "weight"))
    url = reverse("queue_messages", args=[active.pk])
    assert queries_of(lambda: browser.get(url, {"text": "a"})) <= MOST_QUERIES
