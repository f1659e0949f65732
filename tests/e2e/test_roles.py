"""Who may not do something sees that it could be done, and why not by them. What is off is off in the browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from queueapi.choices import Role
from tests.e2e.browser import People
from tests.system import RunningSystem


@pytest.fixture
def queue(demo: RunningSystem) -> str:
    return next(f"/queues/{one['id']}/" for one in demo.get_all("queues") if one["name"] == "Core")


@pytest.fixture
def letter(demo: RunningSystem) -> str:
    [one, *_] = demo.request("GET", "dead-letters?state=open")["results"]
    return f"/dead-letters/{one['id']}/"


def expect_off(page: Page, button: str, why: str) -> None:
    found = page.get_by_role("button", name=button, exact=True).first
    expect(found).to_be_disabled()
    expect(found).to_have_accessible_description(why)


def test_an_operator_keeps_queues_going_and_does_not_change_them(people: People, queue: str, letter: str) -> None:
    page = people(Role.OPERATOR).page
    page.goto(queue)
    for button in ("Resize…", "Delete…"):
        expect_off(page, button, "You have the role operator, which may not change queues.")
    expect(page.get_by_role("link", name="Drain…")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_enabled()
    page.goto(letter)
    expect(page.get_by_role("button", name="Replay…")).to_be_enabled()


def test_an_auditor_sees_all_and_does_nothing(people: People, queue: str, letter: str) -> None:
    page = people(Role.AUDITOR).page
    page.goto(queue)
    expect_off(page, "Pause…", "You have the role auditor, which may not operate queues.")
    expect_off(page, "Drain…", "You have the role auditor, which may not operate queues.")
    page.goto(letter)
    for button in ("Replay…", "Discard…", "Edit…"):
        expect_off(page, button, "You have the role auditor, which may not operate dead letters.")
    page.goto("/services/")
    expect_off(page, "Drain…", "You have the role auditor, which may not operate services.")
    for path in ("/dead-letters/?state=open", "/queues/"):
        page.goto(path)
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        expect(page.get_by_role("checkbox")).to_have_count(0)
        expect(page.get_by_text(re.compile("^You have the role auditor, which may not operate"))).to_be_visible()
