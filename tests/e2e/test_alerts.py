"""Somebody on call: an alert fires, is seen and seen to; a channel is tried; a token is made and revoked."""

import json
import re
from http.client import HTTPConnection
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from queuecore.testing.waiting import wait_until
from tests.e2e.browser import Tenants
from tests.integration.web_receiver import Receiver, answer
from tests.system import RunningSystem

SECONDS = 1000
FIRES_MS = 60 * SECONDS
PAGES = ("/alerts/", "/alert-rules/", "/alert-channels/", "/alert-silences/", "/tokens/", "/users/")
FORMS = (
    *("/alert-rules/new/", "/alert-channels/new/?kind=webhook", "/alert-silences/new/"),
    *("/tokens/new/", "/users/new/"),
)


def fire(system: RunningSystem) -> str:
    """A rule that the demo's dead letters break at once; its name."""
    queue = next(queue for queue in system.get_all("queues") if queue["name"] == "Main")
    name = f"Letters {uuid4().hex[:8]}"
    rule = {"name": name, "metric": "open_letters", "queue": queue["id"], "threshold": 0, "severity": "critical"}
    system.request("POST", "alert-rules", rule)
    return name


def test_an_alert_fires_is_seen_and_acknowledged(demo: RunningSystem, page: Page) -> None:
    name = fire(demo)
    page.goto(f"/alerts/?q={name.replace(' ', '+')}")
    # It is not there yet: the list keeps itself up to date.
    row = page.get_by_role("row", name=re.compile("dead letters of queue Main are open"))
    expect(row).to_be_visible(timeout=FIRES_MS)
    expect(row).to_contain_text("Critical")
    row.get_by_role("link", name=re.compile("dead letters of queue Main")).click()
    expect(page.get_by_role("link", name="See why")).to_have_attribute("href", re.compile("^/dead-letters/"))
    expect(page.get_by_text("Nobody is told: its rule has no channel.")).to_be_visible()
    page.get_by_label("Note").fill("replaying them")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("Acknowledged: it does not escalate")).to_be_visible()
    expect(page.get_by_text("Acknowledged by admin")).to_be_visible()
    alert = demo.get_all(f"alerts?state=acknowledged&subject_key=queue:{queue_of(demo)}")[0]
    assert (alert["acknowledged_by"], alert["note"]) == ("admin", "replaying them")


def test_a_tenants_administrator_sees_to_an_alert_of_its_own_queue(demo: RunningSystem, tenants: Tenants) -> None:
    page, name = tenants.page, f"Kilns-{uuid4().hex[:8]}"
    told = {"name": name, "topic": name.lower(), "handler": "demo.core", "tenant": tenants.id}
    queue = demo.request("POST", "queues", told)
    rule = {"name": f"{name} fail", "metric": "open_letters", "queue": queue["id"], "threshold": 0, "for_s": 0}
    demo.request("POST", "alert-rules", rule)
    page.goto("/alerts/")
    expect(page.get_by_text("Nothing of yours is wrong")).to_be_visible()
    # Nobody can read it: it is a dead letter at once.
    message = {"tenant": tenants.id, "entity": str(uuid4()), "payload_base64": "/w=="}
    demo.request("POST", f"queues/{queue['id']}/messages", message)
    row = page.get_by_role("row", name=re.compile(f"dead letter of queue {name} of {tenants.name} is open"))
    expect(row).to_be_visible(timeout=FIRES_MS)
    row.get_by_role("link", name=re.compile("dead letter of queue")).click()
    expect(page.get_by_role("link", name="See why")).to_have_attribute("href", re.compile("^/dead-letters/"))
    page.get_by_label("Note").fill("we fire them tonight")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("Acknowledged: it does not escalate")).to_be_visible()
    expect(page.get_by_text("we fire them tonight")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("l")
    page.wait_for_url("/alerts/")
    expect(page.get_by_role("row", name=re.compile(name))).to_contain_text("Acknowledged")


def queue_of(system: RunningSystem) -> str:
    return str(next(queue["id"] for queue in system.get_all("queues") if queue["name"] == "Main"))


def test_a_channel_is_created_and_tried(page: Page) -> None:
    with Receiver() as receiver:
        page.goto("/alerts/")
        page.get_by_role("link", name="Channels").click()
        page.get_by_role("link", name="New channel").click()
        page.get_by_role("link", name="Webhook").click()
        page.get_by_label("Name").fill(f"Pager {uuid4().hex[:8]}")
        page.get_by_label("Address", exact=True).fill(receiver.url("/a-secret-path"))
        page.get_by_label("Secret", exact=True).fill("a secret of some length")
        page.get_by_label("It may reach addresses").check()
        page.get_by_role("button", name="Show the plan").click()
        expect(page.get_by_role("heading", name="What would change")).to_be_visible()
        # What is secret is not shown again, not even to whoever has just typed it, and is not lost by that.
        expect(page.get_by_label("Secret", exact=True)).to_have_value("")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_text("Created: channel Pager")).to_be_visible()
        expect(page.get_by_text("a-secret-path")).to_have_count(0)
        page.get_by_role("button", name="Send a test").click()
        expect(page.get_by_text(re.compile(r"Delivered within [\d,]+ ms"))).to_be_visible()
        (request,) = receiver.requests
        assert (request.path, json.loads(request.body)["alerts"][0]["notice"]) == ("/a-secret-path", "test")
        assert request.headers["webhook-signature"]
        receiver.next.append(answer(503, b"closed for today"))
        page.get_by_role("button", name="Send a test").click()
        expect(page.get_by_text(re.compile("Not delivered.*answered 503.*closed for today"))).to_be_visible()


def test_a_token_is_made_copied_and_revoked(demo: RunningSystem, page: Page) -> None:
    name = f"Nightly {uuid4().hex[:8]}"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("g")
    page.keyboard.press("k")
    page.get_by_role("link", name="New token").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Make the token").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    secret = page.evaluate("navigator.clipboard.readText()")
    assert secret == page.locator("#secret").input_value()
    assert status_with(demo, secret) == 200
    page.get_by_role("link", name="I have it").click()
    expect(page.get_by_text(secret)).to_have_count(0)
    page.get_by_role("row", name=re.compile(name)).get_by_role("link", name="Revoke…").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text(f"Revoked: {name}.")).to_be_visible()
    wait_until(lambda: status_with(demo, secret) == 401)


def status_with(system: RunningSystem, secret: str) -> int:
    connection = HTTPConnection("127.0.0.1", system.port, timeout=30)
    try:
        connection.request("GET", "/api/v1/queues", headers={"Authorization": f"Bearer {secret}"})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_a_phone_and_none_complains(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 375, "height": 800})
    for path in (*PAGES, *FORMS):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") == 375, path
