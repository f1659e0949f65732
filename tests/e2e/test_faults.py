"""What goes wrong is told as what it is, and costs nobody what they typed or meant."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import sign_in
from tests.system import RunningSystem

# Live parts have asked once more by then.
ROUND_MS = 10_500
RETRY_MS = 5_500


def queue_of(system: RunningSystem, name: str) -> str:
    return next(str(one["id"]) for one in system.get_all("queues") if one["name"] == name)


@pytest.fixture
def unchecked(browser: Browser, demo: RunningSystem) -> Page:
    """A page whose browser may complain: what is asked for is refused."""
    page = browser.new_context(base_url=demo.url).new_page()
    sign_in(page, demo.password)
    return page


def test_a_queue_that_is_opened_in_a_hidden_tab_has_its_charts(page: Page, demo: RunningSystem) -> None:
    page.add_init_script("Object.defineProperty(document, 'hidden', {get: () => true})")
    page.goto(f"/queues/{queue_of(demo, 'Core')}/")
    expect(page.get_by_role("heading", name="Over time")).to_be_visible()


def test_charts_that_do_not_come_are_asked_for_again(unchecked: Page, demo: RunningSystem) -> None:
    page = unchecked
    page.clock.install()
    page.route("**/charts/*", lambda route: route.abort(), times=1)
    page.goto(f"/queues/{queue_of(demo, 'Core')}/")
    expect(page.locator("#offline")).to_be_visible()
    page.clock.fast_forward(RETRY_MS)
    expect(page.get_by_role("heading", name="Over time")).to_be_visible()
    expect(page.locator("#offline")).to_be_hidden()
    page.context.close()


@pytest.mark.parametrize(
    ("status", "told"),
    [(404, "What this page shows is gone"), (403, "You may not see this any more"), (500, "could not renew this page")],
)
def test_a_server_that_answers_is_not_called_out_of_reach(unchecked: Page, status: int, told: str) -> None:
    page = unchecked
    page.clock.install()
    page.goto("/queues/")
    page.route("**/queues/", lambda route: route.fulfill(status=status, body="refused"))
    page.clock.fast_forward(ROUND_MS)
    expect(page.locator("#offline").get_by_role("alert")).to_contain_text(told)
    page.context.close()


def test_who_presses_twice_publishes_once(page: Page, demo: RunningSystem) -> None:
    name, entity = f"Once-{uuid4().hex[:8]}", str(uuid4())
    queue = demo.request("POST", "queues", {"name": name, "topic": name.lower(), "handler": "log"})["id"]
    page.goto(f"/queues/{queue}/messages/")
    form = page.locator("form", has=page.get_by_role("button", name="Publish"))
    form.get_by_label("Entity").fill(entity)
    form.get_by_label("Payload").fill('{"pressed": "twice"}')
    form.get_by_role("button", name="Publish").dblclick()
    expect(page.get_by_text(re.compile("^Published"))).to_be_visible()
    assert len(demo.request("GET", f"queues/{queue}/messages?entity={entity}")["results"]) == 1


def test_a_form_from_before_one_signed_in_again_keeps_what_was_typed(unchecked: Page, demo: RunningSystem) -> None:
    page = unchecked
    page.goto(f"/queues/{queue_of(demo, 'Core')}/change/")
    page.get_by_label("Messages side by side").fill("13")
    page.context.clear_cookies()
    other = page.context.new_page()
    sign_in(other, demo.password)
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Load the form again").click()
    expect(page.get_by_text("What you had typed is here again")).to_be_visible()
    expect(page.get_by_label("Messages side by side")).to_have_value("13")
    page.context.close()


def test_who_writes_a_comment_is_told_that_the_request_has_changed(page: Page, demo: RunningSystem) -> None:
    tenant = demo.request("POST", "tenants", {"name": f"Mill {uuid4().hex[:8]}"})["id"]
    asked = {"tenant": tenant, "queues": [{"name": "Main", "partitions": 2}], "reason": "a test"}
    request = demo.request("POST", "isolation-requests", asked)["id"]
    page.clock.install()
    page.goto(f"/isolation-requests/{request}/")
    comment = page.locator("form[action$='/comment/'] [name=text]")
    comment.fill("Is this for the night alone?")
    demo.request("POST", f"isolation-requests/{request}/withdraw")
    page.clock.fast_forward(ROUND_MS)
    expect(page.get_by_text("has changed meanwhile")).to_be_visible()
    expect(comment).to_have_value("Is this for the night alone?")
    page.get_by_role("link", name="Load it again").click()
    expect(page.get_by_test_id("request-state")).to_have_text("Refused")


def test_names_without_a_gap_fit_a_phone(page: Page, demo: RunningSystem) -> None:
    name = f"{uuid4().hex}{'Telemetry' * 7}"[:95]
    tenant = demo.request("POST", "tenants", {"name": name})["id"]
    queue = demo.request("POST", "queues", {"name": name, "topic": name.lower(), "handler": "log", "tenant": tenant})
    page.set_viewport_size({"width": 375, "height": 800})
    for path in (f"/queues/{queue['id']}/", f"/queues/{queue['id']}/delete/", f"/tenants/{tenant}/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") == 375, path
