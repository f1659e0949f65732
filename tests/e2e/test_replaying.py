"""On call in the browser: letters of one error, of a filter, or chosen one by one are sent again, at a pace; that is
held up, called off, or followed to the end, looked at or not."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from queuecore.testing.waiting import wait_until
from tests.e2e.browser import clicks_on, count_clicks
from tests.e2e.failing import UNTIL_REPLAYED, fail, make_queue
from tests.e2e.test_journey import publish_failing
from tests.system import RunningSystem

SECONDS = 1000
LISTED_MS = 60 * SECONDS
OVER_MS = 120 * SECONDS
# Long enough to be held up, and not to be waited for.
TAKES_S = 20


@pytest.fixture(scope="module")
def queue(demo: RunningSystem) -> str:
    return make_queue(demo, "Replayed")


@pytest.fixture
def paused(demo: RunningSystem, queue: str) -> Iterator[str]:
    """A queue that nobody consumes while the test does not resume it."""
    entity = fail(demo, queue, UNTIL_REPLAYED, 5)
    demo.request("POST", f"queues/{queue}/pause", {"reason": "the browser test looks at it"})
    wait_until(lambda: {one["state"] for one in demo.request("GET", f"queues/{queue}/consumers")} == {"paused"})
    yield entity
    demo.request("POST", f"queues/{queue}/resume")


def letters_that_are_open(page: Page, entity: str) -> Locator:
    page.goto(f"/dead-letters/?state=open&q={entity}")
    return page.locator("input[name=letter]")


def sent_on(page: Page) -> Locator:
    """How many a replay's page says were sent."""
    return page.locator(".state-line .progress .quiet")


def first_number(text: str) -> int:
    found = re.search(r"[\d,]+", text)
    assert found, text
    return int(found[0].replace(",", ""))


def test_three_clicks_from_the_overview_replay_a_group_that_goes_on_unseen(demo: RunningSystem, page: Page) -> None:
    for _ in range(10):
        publish_failing(demo)
    count_clicks(page)
    page.goto("/")
    page.get_by_role("link", name=re.compile("DownstreamUnavailable billing")).first.click(timeout=LISTED_MS)
    button = page.get_by_role("button", name="Replay the group…")
    expect(button).to_be_in_viewport()
    button.click()
    letters = first_number(page.get_by_role("heading", name=re.compile("will be sent again")).inner_text())
    # What is typed is planned anew: by a key, as it is typed.
    rate = page.get_by_label("Letters a second, at most")
    rate.fill(f"{letters / TAKES_S}")
    rate.press("Enter")
    expect(page.get_by_text("At this rate sending takes")).to_be_visible()
    page.get_by_role("button", name=re.compile(r"^Replay [\d,]+ letters?$")).click()
    page.wait_for_url("/operations/*/")
    assert clicks_on(page) == 3
    state, sent = page.locator(".state-line"), sent_on(page)
    expect(sent).to_have_text(re.compile(r"^[1-9][\d,]* of"), timeout=LISTED_MS)
    page.get_by_role("button", name="Pause").click()
    expect(state).to_contain_text("Paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("It goes on where it stopped.")).to_be_visible()
    seen = first_number(sent.inner_text())
    address = page.url
    page.close()
    again = page.context.new_page()
    again.goto(address)
    expect(again.locator(".state-line")).to_contain_text("Succeeded", timeout=OVER_MS)
    assert first_number(sent_on(again).inner_text()) > seen
    expect(again.get_by_test_id("outcomes")).to_contain_text(re.compile(r"[1-9][\d,]* handled"))
    expect(again.get_by_text(re.compile(r"sent [\d,]+ of [\d,]+ letters")).first).to_be_visible()


def test_a_groups_buttons_are_in_sight_on_a_phone(demo: RunningSystem, page: Page) -> None:
    group = demo.request("GET", "dead-letter-groups")["results"][0]["id"]
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(f"/dead-letters/?state=open&group={group}")
    expect(page.get_by_role("button", name="Replay the group…")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_letters_that_were_chosen_are_replayed_and_no_other(demo: RunningSystem, page: Page, queue: str) -> None:
    entity = fail(demo, queue, UNTIL_REPLAYED, 3)
    letters = letters_that_are_open(page, entity)
    for chosen in (0, 2):
        letters.nth(chosen).check()
    expect(page.get_by_text("2 of 3 on this page chosen")).to_be_visible()
    page.get_by_role("button", name="Replay selected…").click()
    expect(page.get_by_role("heading", name="2 messages will be sent again")).to_be_visible()
    expect(page.get_by_role("table", name="Where the messages go").locator("tbody tr")).to_contain_text(["Replayed-"])
    page.get_by_role("button", name="Replay 2 letters").click()
    expect(page.locator(".state-line")).to_contain_text("Succeeded", timeout=OVER_MS)
    expect(page.get_by_test_id("outcomes")).to_contain_text("2 handled", timeout=OVER_MS)
    expect(letters_that_are_open(page, entity)).to_have_count(1)


def test_a_ramp_waits_for_the_outcome_of_its_first_letters(
    demo: RunningSystem, page: Page, queue: str, paused: str
) -> None:
    letters_that_are_open(page, paused)
    page.get_by_role("button", name="Replay all 5…").click()
    ramp = page.get_by_label("First only so many")
    # Of many that nobody has looked at one by one, a few go first, whoever forgets to say so.
    expect(ramp).to_have_value("1, 10, 100")
    expect(page.get_by_text(re.compile("^Paused is "))).to_be_visible()
    ramp.fill("2")
    page.get_by_role("button", name="Show the plan anew").click()
    page.get_by_role("button", name="Replay 5 letters").click()
    outcomes = page.get_by_test_id("outcomes")
    expect(outcomes).to_contain_text("It waits for the outcome of the first 2.", timeout=OVER_MS)
    expect(outcomes.get_by_role("listitem")).to_have_text(["2 sent, outcome to come", "3 not sent yet"])
    demo.request("POST", f"queues/{queue}/resume")
    expect(outcomes.get_by_role("listitem")).to_have_text(["5 handled"], timeout=OVER_MS)
    expect(page.locator(".state-line")).to_contain_text("Succeeded")


def test_a_replay_at_a_rate_is_held_up_and_called_off(demo: RunningSystem, page: Page, queue: str) -> None:
    entity = fail(demo, queue, UNTIL_REPLAYED, 20)
    letters_that_are_open(page, entity)
    page.get_by_role("button", name="Replay all 20…").click()
    page.get_by_label("Letters a second, at most").fill("0.5")
    page.get_by_label("First only so many").fill("")
    page.get_by_role("button", name="Show the plan anew").click()
    expect(page.get_by_text("At this rate sending takes 40 s.")).to_be_visible()
    page.get_by_role("button", name="Replay 20 letters").click()
    state, sent = page.locator(".state-line"), sent_on(page)
    expect(sent).to_have_text(re.compile("^[1-9][0-9]* of 20$"), timeout=LISTED_MS)
    page.get_by_role("button", name="Pause").click()
    expect(state).to_contain_text("Paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("It goes on where it stopped.")).to_be_visible()
    before = first_number(sent.inner_text())
    wait_until(lambda: first_number(sent.inner_text()) > before)
    page.get_by_role("link", name="Cancel…").click()
    expect(page.get_by_text("what was not sent yet stays open")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(state).to_contain_text("Cancelled", timeout=OVER_MS)
    # What was not sent is open again, to the letter.
    number = first_number(sent.inner_text())
    assert before < number < 20
    expect(letters_that_are_open(page, entity)).to_have_count(20 - number)
