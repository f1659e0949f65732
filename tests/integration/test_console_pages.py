"""Every page of the console: how often it asks the database, which does not grow with what there is; and its size."""

import gzip
from typing import Any

import pytest
from django.test import Client

from queueapi.choices import Role
from queueapi.models import Tenant
from tests.console_pages import THINGS, UnknownThing, _address, addresses, queries_of
from tests.integration.console_things import make_things
from tests.people import person

MOST_QUERIES = 15
LATER_PAGE_BYTES = 50 * 1024


@pytest.fixture
def browser(client: Client, installation: Any, monkeypatch: pytest.MonkeyPatch) -> Client:
    # That somebody was seen is written once a minute, on whichever page that is: here it would be any of them.
    monkeypatch.setattr("console.middleware._SEEN_EVERY_S", float("inf"))
    client.force_login(person("root", Role.ADMINISTRATOR))
    return client


def shown(browser: Client, things: dict[str, Any]) -> dict[str, str]:
    """The pages that can be looked at; those that only take what is sent say so."""
    found = {}
    for name, address in addresses(things).items():
        answer = browser.get(address)
        if answer.status_code != 405:
            assert answer.status_code == 200, f"{name}: {address} answered {answer.status_code}"
            found[name] = address
    found["dead_letters of a group"] = f"{found['dead_letters']}?state=open&group={things['letter_group']}"
    return found


def test_no_page_asks_oftener_when_there_is_more(browser) -> None:
    things = make_things(1)
    pages = shown(browser, things)
    few = {name: queries_of(lambda address=address: browser.get(address)) for name, address in pages.items()}
    make_things(6)
    many = {name: queries_of(lambda address=address: browser.get(address)) for name, address in pages.items()}
    grown = {name: (few[name], many[name]) for name in pages if many[name] > few[name]}
    assert not grown
    too_many = {name: number for name, number in many.items() if number > MOST_QUERIES}
    assert not too_many


def test_pages_are_sent_compressed_and_small(browser) -> None:
    things = make_things(6)
    for name, address in shown(browser, things).items():
        answer = browser.get(address, headers={"Accept-Encoding": "gzip"})
        sent = b"".join(answer.streaming_content) if answer.streaming else answer.content
        assert len(sent) <= LATER_PAGE_BYTES, name
        if len(sent) > 1_000:
            assert answer.headers["Content-Encoding"] == "gzip", name
    page = browser.get("/", headers={"Accept-Encoding": "gzip"})
    assert b"Overview" in gzip.decompress(page.content)


def test_the_rest_interface_is_left_as_it_is(browser) -> None:
    """Its tags say what exactly was sent."""
    Tenant.objects.bulk_create(Tenant(name=f"Tenant {number}") for number in range(20))
    answer = browser.get("/api/v1/tenants", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers


def test_a_route_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownThing, match="say so in"):
        _address("elsewhere/<uuid:pk>/", dict.fromkeys(THINGS.values(), "x"))
