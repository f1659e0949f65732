"""A group is set to another place: looked at before and after, and not done where it has moved on since."""

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from queuecore.testing.waiting import wait_until
from tests.e2e.failing import make_queue, publish
from tests.system import RunningSystem

NOBODY = "no service has this label"


@pytest.fixture
def unread(demo: RunningSystem) -> Iterator[str]:
    """Where a queue is with three messages that nobody may read, before the test is over: all are handled then."""
    queue = make_queue(demo, "Unread", handler="log", label=NOBODY)
    publish(demo, queue, {"sensor": 7}, 3, str(uuid4()))
    yield f"/queues/{queue}/"
    demo.request("PATCH", f"queues/{queue}", {"label": ""})
    wait_until(lambda: [one["lag"] for one in demo.get_all(f"groups?queue={queue}")] == [0])


def plan(page: Page, target: str, **told: str) -> None:
    page.get_by_role("link", name="Set offsets…").click()
    page.get_by_label("Go on from").select_option(target)
    for label, value in told.items():
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Show the plan").click()


def expect_plan(page: Page, **figures: str) -> None:
    """Of the one partition there is, by the columns' names."""
    table = page.get_by_role("table", name="Offsets before and after")
    names = [each.replace(" ", "_").lower() for each in table.get_by_role("columnheader").all_inner_texts()]
    for name, figure in figures.items():
        expect(table.locator("tbody tr > *").nth(names.index(name))).to_have_text(figure)


def confirm(page: Page) -> None:
    page.get_by_role("button", name="Set offsets").click()


def test_a_group_is_set_to_where_its_plan_said(page: Page, unread: str) -> None:
    page.goto(f"{unread}groups/")
    expect(page.get_by_text("Not seen yet")).to_be_visible()
    plan(page, "offset", Offset="2")
    expect_plan(page, before="nothing yet", after="2", end="3")
    confirm(page)
    expect(page.get_by_text(re.compile("^Set: .* goes on from elsewhere in 1 partition.$"))).to_be_visible()
    plan(page, "earliest")
    expect_plan(page, before="2", after="0", never_delivered="0", delivered_again="2", end="3")
    # Somebody else is quicker.
    other = page.context.new_page()
    other.goto(f"{unread}groups/")
    plan(other, "latest")
    expect_plan(other, before="2", after="3", never_delivered="1", delivered_again="0")
    confirm(other)
    expect(other.get_by_text(re.compile("^Set: "))).to_be_visible()
    confirm(page)
    expect(page.get_by_role("alert")).to_contain_text("It is not what was shown any more: the group has moved on.")
    expect_plan(page, before="3", after="0", delivered_again="3")
    confirm(page)
    expect(page.get_by_text(re.compile("^Set: "))).to_be_visible()
    plan(page, "earliest")
    expect_plan(page, before="0", after="0 as it is")
