"""Somebody about to press something: live parts put nothing else under the pointer, and the keys keep their place."""

import re
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.system import RunningSystem

# A live part asks anew within that; a hand is at rest after that.
ROUND_MS = 10_500
REST_MS = 1_100
LONGEST_WAIT_MS = 31_000
LETTERS_MS = 60_000
_ROW = "([x, y]) => document.elementFromPoint(x, y).closest('tr').querySelector('th').innerText"
_LISTEN = """() => {
    answered = new Promise((done) => document.addEventListener("htmx:afterRequest", () => done(), {once: true}))
}"""
# In the moment in which a live part gets new contents: a click that takes its way over the network comes later.
_CLICK_AT_ONCE = """([x, y]) => document.addEventListener("htmx:afterSwap", () => document.elementFromPoint(x, y)
    .dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, detail: 1})), {once: true})"""
# Gone when it is replaced.
_MARK = "(each) => { each.dataset.seen = 'yes' }"


@pytest.fixture
def page(page: Page) -> Page:
    """One whose time is the test's."""
    page.clock.install()
    return page


def point_at(page: Page, thing: Locator) -> list[float]:
    """Where the pointer is then."""
    thing.hover()
    box = thing.bounding_box()
    assert box
    return [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]


def row_at(page: Page, place: list[float]) -> str:
    return str(page.evaluate(_ROW, place))


def await_answer(page: Page, after_ms: int = ROUND_MS) -> None:
    """Until the page has done with an answer that it asked for within that time."""
    page.evaluate(_LISTEN)
    page.clock.fast_forward(after_ms)
    page.evaluate("() => answered")


def create_first(system: RunningSystem) -> str:
    """A queue that the list of queues begins with; its name."""
    name = f"AA-{uuid4().hex[:8]}"
    system.request("POST", "queues", {"name": name, "topic": name.lower(), "handler": "log"})
    return name


def test_rows_stay_under_a_pointer_and_go_on_when_it_leaves(demo: RunningSystem, page: Page) -> None:
    page.goto("/queues/")
    place = point_at(page, page.get_by_role("link", name="Core", exact=True))
    new = page.get_by_role("link", name=create_first(demo))
    await_answer(page)
    assert row_at(page, place).startswith("Core")
    expect(new).to_have_count(0)
    page.mouse.move(1, 1)
    await_answer(page, REST_MS)
    expect(new).to_be_visible()
    assert not row_at(page, place).startswith("Core")


def test_figures_go_on_under_a_pointer_where_nothing_moves(page: Page) -> None:
    page.goto("/queues/")
    core = page.get_by_role("link", name="Core", exact=True)
    place = point_at(page, core)
    core.evaluate(_MARK)
    await_answer(page)
    expect(core).not_to_have_attribute("data-seen", "yes")
    assert row_at(page, place).startswith("Core")


def test_a_pointer_that_is_left_lying_does_not_stop_the_figures(demo: RunningSystem, page: Page) -> None:
    page.goto("/queues/")
    place = point_at(page, page.get_by_role("link", name="Core", exact=True))
    new = page.get_by_role("link", name=create_first(demo))
    await_answer(page)
    expect(new).to_have_count(0)
    # Whoever presses just then meant what was there before.
    page.evaluate(_CLICK_AT_ONCE, place)
    await_answer(page, LONGEST_WAIT_MS)
    expect(new).to_be_visible()
    expect(page).to_have_url(re.compile("/queues/$"))
    page.clock.fast_forward(REST_MS)
    page.get_by_role("link", name="Core", exact=True).click()
    expect(page).to_have_url(re.compile("/queues/.+/$"))


def test_what_comes_above_does_not_push_rows_away_from_a_pointer(demo: RunningSystem, page: Page) -> None:
    name = create_first(demo)
    queue = next(one["id"] for one in demo.get_all("queues") if one["name"] == name)
    page.goto("/")
    place = point_at(page, page.locator("#groups tbody a").first)
    seen = row_at(page, place)
    demo.request("POST", f"queues/{queue}/pause", {"reason": "the browser test looks at it"})
    told = page.locator("main").get_by_text(re.compile(f"{name}: .* was paused by admin"))
    await_answer(page)
    assert row_at(page, place) == seen
    expect(told).to_have_count(0)
    page.mouse.move(1, 1)
    await_answer(page, REST_MS)
    expect(told).to_be_visible()
    demo.request("POST", f"queues/{queue}/resume")


def test_letters_that_come_are_counted_and_their_list_stays(page: Page) -> None:
    page.goto("/dead-letters/?state=open")
    newest = page.locator("table.letters tbody a").first
    shown = newest.get_attribute("href")
    new = page.get_by_role("link", name=re.compile("new letters?: show"))
    # The demo makes them all the time.
    expect(new).to_be_visible(timeout=LETTERS_MS)
    assert newest.get_attribute("href") == shown
    new.click()
    expect(newest).not_to_have_attribute("href", str(shown))


def test_what_is_off_until_letters_are_chosen_says_why(demo: RunningSystem, page: Page) -> None:
    page.goto("/dead-letters/?state=open")
    can_be, cannot_be = (page.locator(f"input[name=letter]:{each}") for each in ("enabled", "disabled"))
    expect(can_be.nth(1)).to_be_visible(timeout=LETTERS_MS)
    buttons = page.locator("[data-needs-selection]")
    for button in buttons.all():
        expect(button).to_be_disabled()
        expect(button).to_have_accessible_description("Choose letters to replay or discard")
    can_be.first.check()
    expect(buttons.first).to_be_enabled()
    expect(buttons.first).to_have_accessible_description("Shows first what would be sent, and where")
    can_be.first.uncheck()
    expect(buttons.first).to_have_accessible_description("Choose letters to replay or discard")
    letter = can_be.first.get_attribute("value")
    demo.request("POST", "dead-letters/discard", {"letters": [letter], "reason": "the browser test looks at it"})
    page.goto(f"/dead-letters/?q={letter}")
    expect(cannot_be).to_have_accessible_description("Discarded")
    every = page.get_by_role("checkbox", name="Select all on this page")
    for each in (every, buttons.first):
        expect(each).to_be_disabled()
        expect(each).to_have_accessible_description("None on this page can be chosen")


def test_keys_stay_where_they_are(page: Page) -> None:
    page.goto("/queues/")
    heading = page.get_by_role("link", name="Messages behind")
    heading.focus()
    heading.evaluate(_MARK)
    await_answer(page)
    expect(heading).not_to_have_attribute("data-seen", "yes")
    expect(heading).to_be_focused()


def test_every_key_leads_to_its_page(page: Page) -> None:
    page.goto("/audit/")
    keys = page.locator("[data-go]").evaluate_all("(links) => links.map((each) => [each.dataset.go, each.pathname])")
    assert len(keys) > 10
    for key, address in keys:
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(lambda url, address=address: urlsplit(url).path == address)


def test_the_keys_are_listed(page: Page) -> None:
    link = page.get_by_role("link", name="Queues", exact=True)
    link.focus()
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_be_visible()
    for key in page.locator("[data-go]").evaluate_all("(links) => links.map((each) => each.dataset.go)"):
        expect(sheet.locator("dt").filter(has_text=re.compile(f"^g {key}$"))).to_have_count(1)
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(link).to_be_focused()


def test_keys_can_be_switched_off(page: Page) -> None:
    page.goto("/queues/")
    page.get_by_role("button", name="Shortcuts").click()
    page.get_by_label("These keys are on").uncheck()
    page.reload()
    page.keyboard.press("/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Shortcuts").click()
    page.get_by_label("These keys are on").check()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("dialog", name="Search")).to_be_visible()


def test_who_listens_hears_of_what_is_new_and_of_no_figure(page: Page) -> None:
    page.goto("/queues/")
    announcer = page.locator("#announcer")
    # Two problems, as the overview tells them.
    page.evaluate("""() => {
        const problems = Object.assign(document.createElement("ul"), {id: "problems"})
        problems.dataset.announce = ""
        problems.innerHTML = "<li>Core: 1,204 waiting, 3 min behind</li><li>61 letters wait</li>"
        document.querySelector("main").append(problems)
        announce()
    }""")
    expect(announcer).to_have_text("Core: 1,204 waiting, 3 min behind 61 letters wait")
    page.evaluate("() => { find('#announcer').textContent = '' }")
    page.evaluate("() => { find('#problems li').textContent = 'Core: 996 waiting, 58 s behind'; announce() }")
    expect(announcer).to_have_text("")
    page.evaluate("() => { find('#problems li').textContent = 'Core: nobody consumes it'; announce() }")
    expect(announcer).to_have_text("Core: nobody consumes it")


def test_a_theme_is_chosen_and_kept(page: Page) -> None:
    page.goto("/queues/")
    frame, button = page.locator("html"), page.get_by_role("button", name=re.compile("^Theme"))
    ground = {}
    for theme in ("light", "dark"):
        button.click()
        page.reload()
        expect(frame).to_have_attribute("data-theme", theme)
        expect(button).to_have_text(f"Theme: {theme}")
        ground[theme] = frame.evaluate("(each) => getComputedStyle(each).backgroundColor")
    assert ground["light"] != ground["dark"]
    button.click()
    page.reload()
    expect(frame).not_to_have_attribute("data-theme", re.compile(""))
    expect(button).to_have_text("Theme: auto")
