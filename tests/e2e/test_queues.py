"""On call in the browser: why a queue lags, how it was, what is in it, and pausing several."""

import re
from collections.abc import Iterator
from datetime import datetime
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from queuecore.testing.waiting import wait_until
from tests.e2e.failing import make_queue
from tests.system import RunningSystem

SECONDS = 1000
FIRST_LAG_MS = 180 * SECONDS
# Until enough was sampled to tell that it stands still, and the pipeline has said so.
STOPPED_MS = 240 * SECONDS


@pytest.fixture
def paused_core(demo: RunningSystem, page: Page) -> Iterator[Page]:
    """The list of queues, after Core was paused from it."""
    page.goto("/queues/")
    choose(page, "Pause selected…")
    page.get_by_label("Reason").fill("the browser test looks at it")
    page.get_by_role("button", name="Pause 1 queue").click()
    expect(page.get_by_text("Paused: 1 queue.")).to_be_visible()
    yield page
    page.goto("/queues/")
    choose(page, "Resume selected…")
    page.get_by_role("button", name="Resume 1 queue").click()
    expect(page.get_by_text("Resumed: 1 queue.")).to_be_visible()


def choose(page: Page, button: str) -> None:
    """Nothing is replaced under who has chosen something, and no button works before."""
    pressed = page.get_by_role("button", name=button)
    expect(pressed).to_be_disabled()
    page.get_by_role("checkbox", name=re.compile("Select Core")).check()
    expect(page.get_by_text(re.compile("1 of [0-9]+ on this page chosen"))).to_be_visible()
    pressed.click()


def test_from_the_overview_one_click_leads_to_why_a_queue_lags(paused_core: Page) -> None:
    page = paused_core
    page.goto("/")
    row = page.get_by_role("row", name=re.compile("Core"))
    expect(row.get_by_text(re.compile("^(WARN|STOP|STALL)"))).to_be_visible(timeout=STOPPED_MS)
    row.get_by_role("link", name="Core", exact=True).click()
    why = page.locator("#why")
    expect(why).to_be_visible()
    expect(why).to_have_text(re.compile("partition [0-9], which does worst"))
    expect(page.get_by_text("the browser test looks at it").first).to_be_visible()


def test_several_queues_are_paused_and_resumed_after_their_plan(demo: RunningSystem, page: Page) -> None:
    mark = f"Several-{uuid4().hex[:8]}"
    queues = [make_queue(demo, f"{mark}-{letter}", handler="log") for letter in "abc"]
    demo.request("POST", f"queues/{queues[2]}/pause", {"reason": "before"})
    page.goto(f"/queues/?q={mark}")
    every = page.get_by_role("checkbox", name="Select all on this page")
    every.check()
    page.get_by_role("button", name="Pause selected…").click()
    plan = page.get_by_role("table", name="Queues that would be paused")
    expect(plan.locator("tbody tr")).to_contain_text([f"{mark}-a", f"{mark}-b"])
    expect(plan.locator("tbody td:last-child")).to_have_text(["Paused", "Paused"])
    expect(page.get_by_text(re.compile(f"Left out, as paused already: {mark}-c"))).to_be_visible()
    page.get_by_label("Reason").fill("a flood")
    page.get_by_role("button", name="Pause 2 queues").click()
    expect(page.get_by_text("Paused: 2 queues.")).to_be_visible()
    # The list is filtered as before.
    rows = page.get_by_role("row", name=re.compile(f"{mark}-[abc].* Paused"))
    expect(rows).to_have_count(3)
    every.check()
    page.get_by_role("button", name="Resume selected…").click()
    expect(page.get_by_text(re.compile("^Everything paused by admin .*: a flood$"))).to_have_count(2)
    page.get_by_role("button", name="Resume 3 queues").click()
    expect(page.get_by_text("Resumed: 3 queues.")).to_be_visible()
    expect(rows).to_have_count(0)


def test_enter_shows_the_plan_of_what_was_typed_and_does_nothing(page: Page, demo: RunningSystem) -> None:
    page.goto("/queues/")
    page.get_by_role("link", name="Core", exact=True).click()
    page.get_by_role("link", name="Resize…").click()
    for number in ("24", "48"):
        page.get_by_label("Partitions").fill(number)
        page.get_by_label("Partitions").press("Enter")
        expect(page.get_by_text("Topics to be made")).to_be_visible()
        expect(page.get_by_label("Partitions")).to_have_value(number)
        expect(page).to_have_url(re.compile("/resize/$"))


def test_charts_come_after_the_page_and_the_time_is_chosen(page: Page, demo: RunningSystem) -> None:
    page.goto("/queues/")
    page.get_by_role("link", name="Core", exact=True).click()
    chart = page.get_by_role("img", name=re.compile("^Lag in messages"))
    expect(chart).to_be_visible(timeout=FIRST_LAG_MS)
    page.get_by_role("link", name="6 h").click()
    expect(page).to_have_url(re.compile(r"\?range=6h$"))
    expect(page.get_by_role("link", name="6 h")).to_have_attribute("aria-current", "true")
    page.get_by_text("As a table").first.click()
    expect(page.get_by_role("table", name="Lag in messages")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="6 h")).to_have_attribute("aria-current", "true")
    page.get_by_role("link", name="24 h").click()
    expect(page.get_by_role("link", name="24 h")).to_have_attribute("aria-current", "true")
    page.go_back()
    expect(page.get_by_role("link", name="6 h")).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()


def shown_time(page: Page, name: str) -> datetime:
    """One end of what the charts show."""
    return datetime.fromisoformat(page.locator(f".range-form [name={name}]").input_value())


def drag(page: Page, plot: Locator, begin: float, end: float) -> None:
    """Over the plot, from one part of its width to another; the button is still down."""
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + begin * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], middle, steps=5)


def test_a_time_is_chosen_by_dragging_over_a_chart(page: Page, demo: RunningSystem) -> None:
    queue = next(one["id"] for one in demo.get_all("queues") if one["name"] == "Core")
    wait_until(lambda: demo.request("GET", f"queues/{queue}/lag/history")["points"], FIRST_LAG_MS / SECONDS)
    page.goto(f"/queues/{queue}/?range=24h")
    plot = page.locator(".plot svg").first
    expect(plot).to_be_visible()
    begin, end = (shown_time(page, name) for name in ("from", "to"))

    drag(page, plot, 0.25, 0.75)
    expect(page.locator(".plot-chosen").first).to_have_text(re.compile(" to .* UTC"))
    page.keyboard.press("Escape")
    expect(page.locator(".plot-chosen").first).to_be_hidden()
    page.mouse.up()
    expect(page).to_have_url(re.compile("range=24h$"))

    drag(page, plot, 0.75, 0.25)
    page.mouse.up()
    expect(page).to_have_url(re.compile("range=custom"))
    expect(page.locator(".range-form")).to_be_visible()
    chosen = shown_time(page, "to") - shown_time(page, "from")
    assert (end - begin) * 0.45 < chosen < (end - begin) * 0.55


def test_messages_are_found_and_groups_are_not_set_under_their_readers(page: Page) -> None:
    page.goto("/queues/")
    page.get_by_role("link", name="Core", exact=True).click()
    page.get_by_role("link", name="Messages").click()
    first = page.locator("table.messages tbody tr").first
    first.locator("summary").click()
    expect(first.locator("pre")).to_contain_text("{")
    expect(first.get_by_text("producerId")).to_be_visible()
    page.get_by_role("link", name="Groups", exact=True).click()
    page.get_by_role("link", name="Set offsets…").first.click()
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_role("table", name="Offsets before and after")).to_be_visible()
    expect(page.get_by_role("button", name="Set offsets")).to_be_disabled()
    expect(page.get_by_text(re.compile("members that read these partitions"))).to_be_visible()


def test_a_phone_shows_all_columns_and_of_which_queue_they_are(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 800})
    # Near the top, however many queues other tests have made.
    page.goto("/queues/?q=tb_core")
    last = page.get_by_role("columnheader", name="As of")
    expect(last).not_to_be_in_viewport()
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_role("link", name="Core", exact=True)).to_be_in_viewport(ratio=0.9)


def test_pages_of_queues_fit_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto("/queues/")
    queue = page.get_by_role("link", name="Core", exact=True).get_attribute("href")
    assert queue is not None
    parts = ("", "messages/", "groups/", "configuration/")
    for path in ("/", "/queues/", "/pending-requests/", *(f"{queue}{part}" for part in parts)):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") == 375, path
