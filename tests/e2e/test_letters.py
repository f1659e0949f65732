"""On call in the browser: a letter is mended and handled then; others are given up, and taken back."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from queueapi.choices import Role
from tests.e2e.browser import People, sign_in
from tests.e2e.failing import UNTIL_MENDED, fail, letters_of, make_queue
from tests.system import RunningSystem

SECONDS = 1000
HANDLED_MS = 60 * SECONDS


@pytest.fixture(scope="module")
def queue(demo: RunningSystem) -> str:
    return make_queue(demo, "Mended")


@pytest.fixture
def letter(demo: RunningSystem, queue: str) -> str:
    """Where a letter is whose temperature is no number."""
    return page_of(demo, fail(demo, queue, UNTIL_MENDED))


def page_of(system: RunningSystem, entity: str) -> str:
    [letter] = letters_of(system, entity)
    return f"/dead-letters/{letter['id']}/"


def payload_of(page: Page) -> Locator:
    return page.get_by_label("Payload", exact=True)


def save(page: Page) -> Locator:
    return page.get_by_role("button", name="Save", exact=True)


def mend(page: Page, temperature: float) -> None:
    """What was typed is compared, and not saved yet."""
    payload_of(page).fill(payload_of(page).input_value().replace('"warm"', str(temperature)))
    page.get_by_role("button", name="Show what changes").click()


def shown(page: Page, title: str) -> Locator:
    """A part of a letter's page, with its title."""
    return page.get_by_role("region", name=title, exact=True).first


def test_a_letter_is_mended_compared_and_handled(demo: RunningSystem, page: Page, queue: str) -> None:
    entity = fail(demo, queue, UNTIL_MENDED)
    letter = page_of(demo, entity)
    page.goto(letter)
    page.get_by_role("link", name="Edit…").click()
    expect(save(page)).to_be_disabled()
    headers = page.get_by_label("Headers")
    headers.fill(f"{headers.input_value()}\nunit: celsius")
    page.get_by_label("Reason").fill("the sensor sent a word")
    mend(page, 21.5)
    changes = page.locator("pre.compared")
    expect(changes.locator("del")).to_have_text(['removed: "temperature": "warm"'])
    expect(changes.locator("ins")).to_have_text(["added: unit: celsius", 'added: "temperature": 21.5'])
    save(page).click()
    expect(page.get_by_text("Saved: a replay sends the edited message.")).to_be_visible()
    expect(shown(page, "Payload")).to_contain_text("warm")
    expect(shown(page, "Edited payload")).to_contain_text("21.5")
    expect(shown(page, "Ledger")).to_contain_text("Edited by admin: the sensor sent a word")
    page.get_by_role("button", name="Replay…").click()
    page.get_by_role("button", name="Replay 1 letter").click()
    page.wait_for_url("/operations/*/")
    page.goto(letter)
    expect(page.get_by_test_id("letter-state")).to_have_text("Replayed", timeout=HANDLED_MS)
    # What was sent is the edited message; the original is what it was, here and in the queue.
    expect(shown(page, "Payload")).to_contain_text("warm")
    page.goto(f"/queues/{queue}/messages/?entity={entity}")
    sent, original = page.locator("table.messages tbody tr").all()
    for message, temperature, is_of_unit in ((sent, "21.5", 1), (original, "warm", 0)):
        message.locator("summary").click()
        expect(message.locator("pre")).to_contain_text(temperature)
        expect(message.get_by_text("celsius")).to_have_count(is_of_unit)


def test_of_two_who_mend_a_letter_the_second_is_shown_what_the_first_did(
    browser: Browser, demo: RunningSystem, people: People, letter: str
) -> None:
    first = people(Role.OPERATOR)
    # Their browser complains of an answer that says that there is a conflict.
    page = browser.new_context(base_url=demo.url).new_page()
    sign_in(page, demo.password)
    for each, temperature in ((page, 19), (first.page, 20)):
        each.goto(f"{letter}edit/")
        mend(each, temperature)
    save(first.page).click()
    expect(first.page.get_by_text("Saved: a replay sends the edited message.")).to_be_visible()
    save(page).click()
    theirs = page.locator("#clashes")
    expect(theirs).to_contain_text(f"{first.name} has edited the letter since you opened it")
    expect(theirs.locator("ins")).to_have_text(['added: "temperature": 20'])
    expect(payload_of(page)).to_have_value(re.compile('"temperature": 19'))
    # Who has seen it may have it their way.
    page.get_by_role("button", name="Show what changes").click()
    save(page).click()
    expect(shown(page, "Edited payload")).to_contain_text('"temperature": 19')
    expect(shown(page, "Ledger")).to_contain_text(f"Edited by {first.name}")
    page.context.close()


def test_all_that_a_filter_leaves_are_discarded_and_restored(
    demo: RunningSystem, page: Page, queue: str, letter: str
) -> None:
    entity, mark = fail(demo, queue, UNTIL_MENDED, 3), uuid4().hex[:8]
    page.goto(f"/dead-letters/?state=open&q={entity}")
    page.get_by_role("button", name="Discard all 3…").click()
    expect(page.get_by_role("heading", name="3 letters will be discarded")).to_be_visible()
    page.get_by_label("Reason").fill(f"a test rig, {mark}")
    page.get_by_role("button", name="Discard 3 letters").click()
    expect(page.get_by_text("3 letters were discarded.")).to_be_visible()
    # The list is filtered as before, and has none any more.
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    page.get_by_role("navigation", name="By state").get_by_role("link", name=re.compile("^Discarded")).click()
    page.get_by_role("button", name="Restore all 3…").click()
    page.get_by_label("Reason").fill(f"it was none, {mark}")
    page.get_by_role("button", name="Restore 3 letters").click()
    expect(page.get_by_text("3 letters were restored.")).to_be_visible()
    assert {one["state"] for one in letters_of(demo, entity)} == {"open"}
    page.goto(letter)
    expect(page.get_by_test_id("letter-state")).to_have_text("Open")
    page.goto("/dead-letters/ledger/")
    page.get_by_label("Reason").fill(mark)
    page.get_by_role("button", name="Filter").click()
    told = page.get_by_role("table", name="Ledger of dead letters").locator("tbody tr")
    expect(told).to_have_count(2)
    for row, decided in zip(told.all(), ("Restored 3 .* it was none", "Discarded 3 .* a test rig"), strict=True):
        expect(row).to_contain_text(re.compile(f"admin {decided}, {mark}".replace(" ", r"\s+"), re.DOTALL))
