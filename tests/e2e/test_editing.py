"""Two people and one queue, search by keyboard, a session that is over, a connection that is lost."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import sign_in
from tests.system import RunningSystem

# Of what comes after the page, on a machine that has other things to do.
PATIENCE_MS = 30_000
# A live part asks anew within that.
ROUND_MS = 10_500


@pytest.fixture
def queue(demo: RunningSystem) -> str:
    """Where a queue is that nobody else looks at."""
    name = f"Edited-{uuid4().hex[:8]}"
    return f"/queues/{demo.request('POST', 'queues', {'name': name, 'topic': name.lower(), 'handler': 'log'})['id']}/"


def another(browser: Browser, demo: RunningSystem) -> Page:
    """A browser of somebody else's, whose complaints are theirs."""
    page = browser.new_context(base_url=demo.url).new_page()
    sign_in(page, demo.password)
    return page


def change(page: Page, label: str, value: str) -> None:
    page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Show the plan").click()


def test_of_two_people_who_edit_a_queue_the_second_is_shown_what_the_first_did(
    browser: Browser, demo: RunningSystem, queue: str
) -> None:
    first, second = another(browser, demo), another(browser, demo)
    second.goto(f"{queue}change/")
    first.goto(f"{queue}change/")
    change(first, "Messages side by side", "7")
    first.get_by_role("button", name="Change", exact=True).click()
    expect(first.get_by_text("Changed. Hosts consume it so within seconds.")).to_be_visible()
    second.get_by_label("Poll interval").fill("70 ms")
    change(second, "Messages side by side", "9")
    clashes = second.locator("#clashes")
    expect(clashes).to_contain_text("Somebody else has changed this queue since you opened it")
    row = clashes.get_by_role("row", name=re.compile("Messages side by side"))
    expect(row.get_by_role("cell")).to_contain_text(["4", "7", "admin", "9"])
    expect(second.get_by_label("Poll interval")).to_have_value("70 ms")
    second.get_by_role("button", name="Show the plan").click()
    second.get_by_role("button", name="Change", exact=True).click()
    expect(second.get_by_text("70 ms").first).to_be_visible()
    expect(second.get_by_text("9 messages side by side")).to_be_visible()
    for page in (first, second):
        page.context.close()


def test_the_picture_follows_the_strategy_that_is_chosen(page: Page, queue: str) -> None:
    page.goto(f"{queue}change/")
    expect(page.get_by_label("Retries")).to_be_hidden()
    page.get_by_role("radio", name=re.compile("^RETRY_ALL ")).check()
    expect(page.get_by_label("Retries")).to_be_visible()
    expect(page.locator("#strategy-picture")).to_contain_text("BURST and RETRY_ALL", timeout=PATIENCE_MS)
    page.get_by_label("Handler", exact=True).select_option("webhook")
    options = page.get_by_role("table", name="Options of webhook")
    expect(options).to_contain_text("never shown again", timeout=PATIENCE_MS)


def test_anything_is_found_by_keyboard_from_any_page(page: Page) -> None:
    page.goto("/audit/")
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name=re.compile("Search queues, topics"))
    expect(box).to_be_focused()
    page.keyboard.type("tb_core")
    hits = page.locator("#search-results [data-hit]")
    expect(hits.first).to_contain_text("Core", timeout=PATIENCE_MS)
    page.keyboard.press("ArrowDown")
    expect(hits.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(box).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Core", exact=True)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator("#search")).to_be_hidden()
    page.goto("/queues/")
    page.keyboard.press("f")
    expect(page.locator(".filters input[type=search]")).to_be_focused()


def test_a_session_that_is_over_leads_back_to_where_one_was(page: Page, demo: RunningSystem) -> None:
    page.goto("/queues/?q=core")
    page.context.clear_cookies()
    page.evaluate("htmx.trigger('#live', 'wake')")
    page.wait_for_url(re.compile("/login/"))
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("/queues/?q=core")


@pytest.mark.parametrize("asks_at_once", [False, True])
def test_what_was_typed_is_there_again_after_a_session_was_over(
    page: Page, demo: RunningSystem, queue: str, asks_at_once: bool
) -> None:
    page.goto(f"{queue}change/")
    page.get_by_label("Messages side by side").fill("11")
    page.context.clear_cookies(name="switchyard_session")
    # The picture of the strategies is asked for at once; any other field would be sent with the form.
    if asks_at_once:
        # Not `check`, which would look at the radio button once more: the page is gone by then.
        page.get_by_role("radio", name=re.compile("^RETRY_ALL ")).click()
    else:
        page.get_by_role("button", name="Show the plan").click()
    page.wait_for_url(re.compile("/login/"))
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{queue}change/")
    notice = page.get_by_text("What you had typed is here again")
    expect(notice).to_be_visible()
    expect(page.get_by_label("Messages side by side")).to_have_value("11")
    expect(page.get_by_role("radio", name=re.compile("^RETRY_ALL "))).to_be_checked(checked=asks_at_once)
    page.get_by_role("button", name="Show the plan").click()
    expect(page.locator("#plan")).to_contain_text("11")
    expect(notice).to_be_hidden()
    page.reload()
    expect(notice).to_be_hidden()


def test_what_was_typed_where_a_form_was_refused_is_on_the_page_above(
    page: Page, demo: RunningSystem, queue: str
) -> None:
    page.goto(queue)
    reason = page.locator("#pauses").get_by_label("Reason")
    reason.fill(" ")
    page.locator("#pauses").get_by_role("button", name="Pause").click()
    page.wait_for_url(re.compile(f"{queue}pause/"))
    reason.fill("a flood")
    page.context.clear_cookies(name="switchyard_session")
    page.locator("#pauses").get_by_role("button", name="Pause").click()
    page.wait_for_url(re.compile("/login/"))
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile(f"{queue}(#.*)?$"))
    expect(page.get_by_text("What you had typed is here again")).to_be_visible()
    expect(reason).to_have_value("a flood")


def test_a_lost_connection_is_told_and_forgotten_when_it_is_back(browser: Browser, demo: RunningSystem) -> None:
    page = another(browser, demo)
    page.clock.install()
    page.goto("/queues/")
    notice = page.locator("#offline")
    expect(notice).to_be_hidden()
    page.context.set_offline(True)
    page.clock.fast_forward(ROUND_MS)
    expect(notice).to_be_visible(timeout=PATIENCE_MS)
    expect(notice.get_by_role("alert")).to_have_text("This page can't reach the server, and keeps trying.")
    expect(notice).to_contain_text(re.compile(r"What you see is from 1\d s ago"))
    page.context.set_offline(False)
    page.clock.fast_forward(ROUND_MS)
    expect(notice).to_be_hidden(timeout=PATIENCE_MS)
    page.context.close()
