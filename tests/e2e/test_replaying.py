"""On call in the browser: all letters of one error sent again, held up, and followed to the end, looked at or not."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.test_journey import publish_failing
from tests.system import RunningSystem

SECONDS = 1000
LISTED_MS = 60 * SECONDS
OVER_MS = 120 * SECONDS
# Long enough to be held up, and not to be waited for.
TAKES_S = 20
_COUNT = "addEventListener('click', () => { sessionStorage.clicks = 1 + Number(sessionStorage.clicks ?? 0) }, true)"


def first_number(text: str) -> int:
    found = re.search(r"[\d,]+", text)
    assert found, text
    return int(found[0].replace(",", ""))


def test_three_clicks_from_the_overview_replay_a_group_that_goes_on_unseen(demo: RunningSystem, page: Page) -> None:
    for _ in range(10):
        publish_failing(demo)
    page.add_init_script(_COUNT)
    page.goto("/")
    page.get_by_role("link", name=re.compile("DownstreamUnavailable billing")).first.click(timeout=LISTED_MS)
    button = page.get_by_role("button", name="Replay the group…")
    expect(button).to_be_in_viewport()
    button.click()
    letters = first_number(page.get_by_role("heading", name=re.compile("will be sent again")).inner_text())
    page.get_by_label("Letters a second, at most").fill(f"{letters / TAKES_S}")
    page.get_by_role("button", name=re.compile(r"^Replay [\d,]+ letters?$")).click()
    page.wait_for_url("/operations/*/")
    assert page.evaluate("sessionStorage.clicks") == "3"
    state, sent = page.locator(".state-line"), page.locator(".state-line .progress .quiet")
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
    assert first_number(again.locator(".state-line .progress .quiet").inner_text()) > seen
    expect(again.get_by_test_id("outcomes")).to_contain_text(re.compile(r"[1-9][\d,]* handled"))
    expect(again.get_by_text(re.compile(r"sent [\d,]+ of [\d,]+ letters")).first).to_be_visible()


def test_a_groups_buttons_are_in_sight_on_a_phone(demo: RunningSystem, page: Page) -> None:
    group = demo.request("GET", "dead-letter-groups")["results"][0]["id"]
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(f"/dead-letters/?state=open&group={group}")
    expect(page.get_by_role("button", name="Replay the group…")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
