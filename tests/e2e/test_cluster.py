"""On call in the browser: what moves if services join or leave; one leaves, is followed to the end, and comes back."""

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from queuecore.testing.waiting import wait_until
from tests.system import RunningSystem

SECONDS = 1000
MOVED_MS = 60 * SECONDS
# Of who is not there.
NOTHING = "\N{EN DASH}"


@pytest.fixture
def service(demo: RunningSystem) -> Iterator[str]:
    """One of several that share the partitions. They do so again when the test is over."""
    [*_, one] = wait_until(lambda: consuming(demo))
    yield one
    if demo.request("GET", f"services/{one}")["draining"]:
        demo.request("POST", f"services/{one}/undrain")
    wait_until(lambda: consuming(demo))


def consuming(system: RunningSystem) -> list[str]:
    """Services that have partitions; none while they are not two or more."""
    found = [one["service_id"] for one in system.get_all("services") if one["partitions"]]
    return found if len(found) > 1 else []


def ask(page: Page) -> None:
    page.get_by_role("button", name="Show what would happen").click()
    expect(page.get_by_role("heading", name=re.compile("partitions? would move"))).to_be_visible()


def drawn(page: Page) -> Locator:
    return page.get_by_role("img", name=re.compile("^Moves by service instance"))


def share(page: Page, when: str, service: str) -> Locator:
    """How many partitions a service has, before or after."""
    table = page.get_by_role("table", name=f"Partitions of each service {when}")
    return table.get_by_role("row", name=re.compile(f"^{re.escape(service)} ")).get_by_role("cell").first


def test_what_a_service_that_joins_would_get_is_drawn(demo: RunningSystem, service: str, page: Page) -> None:
    page.goto("/services/")
    page.get_by_role("link", name="Plan a rebalance").click()
    page.get_by_label("Services that join").fill("1")
    ask(page)
    expect(drawn(page)).to_have_accessible_name(re.compile("partitions? moves? from .* to new-1"))
    expect(share(page, "before", "new-1")).to_have_text(NOTHING)
    expect(share(page, "after", "new-1")).to_have_text(re.compile("^[1-9]"))
    apply = page.get_by_role("button", name="Apply")
    expect(apply).to_be_disabled()
    expect(apply).to_have_accessible_description(re.compile("^A service joins by being started"))


def test_a_service_leaves_is_followed_to_the_end_and_comes_back(demo: RunningSystem, service: str, page: Page) -> None:
    reason = f"a new disk, {uuid4().hex[:8]}"
    page.goto("/rebalances/plan/")
    page.get_by_role("checkbox", name=service, exact=True).check()
    ask(page)
    expect(drawn(page)).to_have_accessible_name(re.compile(f"from {re.escape(service)} to"))
    expect(share(page, "before", service)).to_have_text(re.compile("^[1-9]"))
    expect(share(page, "after", service)).to_have_text(NOTHING)
    page.get_by_role("button", name="Apply").click()
    # Nobody is moved without a reason, and the plan is not to be asked for again.
    expect(page.get_by_text(re.compile("^Not begun: say in 1 to .* characters why"))).to_be_visible()
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url(re.compile("/rebalances/[0-9a-f-]{36}/"))
    expect(page.get_by_role("heading", name=reason)).to_be_visible()
    state = page.locator(".state-line")
    expect(state).to_contain_text("Done", timeout=MOVED_MS)
    expect(state).to_contain_text("100 %")
    expect(drawn(page)).to_have_accessible_name(re.compile(f"from {re.escape(service)} to"))
    page.goto("/rebalances/")
    expect(page.get_by_role("row", name=re.compile(f"{reason} Done .* Asked for by admin"))).to_be_visible()
    bring_back(page, service)


def bring_back(page: Page, service: str) -> None:
    page.goto("/services/")
    row = page.get_by_role("row", name=re.compile(f"^{re.escape(service)} "))
    expect(row).to_contain_text("can be stopped", timeout=MOVED_MS)
    row.get_by_role("link", name="Undrain…").click()
    expect(drawn(page)).to_have_accessible_name(re.compile(f"to {re.escape(service)}(;|$)"))
    page.get_by_role("button", name="Undrain").click()
    expect(page.get_by_text(f"{service} gets its share of partitions again.")).to_be_visible()
    expect(row).to_contain_text("Alive")
    # Not under the pointer, where nothing is replaced.
    page.mouse.move(1, 1)
    expect(row.locator(".load-number")).to_have_text(re.compile("^[1-9]"), timeout=MOVED_MS)
