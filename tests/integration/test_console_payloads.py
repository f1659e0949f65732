"""Payloads in the browser on queues with a message type: decoded, mended and published as what handlers expect."""

import html
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from console.payloads import MAX_JSON_CHARACTERS, MAX_TEXT_BYTES, show_payload
from queueapi.actions.actor import SYSTEM
from queueapi.actions.letter_edits import edit_letter
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import Role
from queueapi.models import DeadLetter, Queue
from queuecore.messages import QueueMessage
from tests.console_pages import queries_of
from tests.letters import make_letter
from tests.message_types import NEWER, SOURCE, form_of, make_type
from tests.people import person

MOST_QUERIES = 15
ORDER = {"id": "a-7", "amount": "215"}


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


def test_json_that_is_endless_once_decoded_is_cut(form) -> None:
    payload = form.from_json({"parts": [{"parts": [{"parts": [{}] * 3}] * 100}] * 60})
    assert len(payload) < MAX_TEXT_BYTES
    shown = show_payload(payload, form)
    assert len(shown.text) == MAX_JSON_CHARACTERS
    assert shown.notes == (f"The first {MAX_JSON_CHARACTERS:,} characters of its JSON.",)


def test_pages_of_letters_ask_a_bounded_number_of_times(admin_client, queue) -> None:
    make_type([queue.topic], SOURCE.replace("amount", "total"))
    letter = make_letter(queue, payload=form_of().from_json(ORDER))
    for name in ("dead_letter",):
        assert queries_of(lambda name=name: admin_client.get(reverse(name, args=[letter.pk]))) <= MOST_QUERIES
