"""What was changed is looked up: by whom, of what, and what was before."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.failing import make_queue
from tests.system import RunningSystem


def test_a_change_is_found_with_what_was_before(demo: RunningSystem, page: Page) -> None:
    queue = make_queue(demo, "Audited", handler="log")
    page.goto(f"/queues/{queue}/change/")
    page.get_by_label("Messages side by side").fill("7")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_text("Changed. Hosts consume it so within seconds.")).to_be_visible()
    page.goto(f"/queues/{queue}/configuration/")
    page.get_by_role("link", name="All in the audit").click()
    entries = page.get_by_role("table", name="Audit entries").locator("tbody tr")
    expect(entries).to_contain_text(["change", "create"])
    changed = entries.first
    expect(changed.get_by_role("rowheader")).to_contain_text("admin")
    expect(changed.get_by_role("term")).to_have_text(["concurrency"])
    expect(changed.locator("del")).to_have_text("4")
    expect(changed.locator("ins")).to_have_text("7")
    changed.get_by_role("link", name=re.compile("^Audited-")).click()
    expect(page.get_by_role("heading", name=re.compile("^Audited-"))).to_be_visible()


def test_the_audit_is_searched_by_who_and_by_what_was_there(demo: RunningSystem, page: Page) -> None:
    queue = make_queue(demo, "Audited", handler="log")
    name = demo.request("GET", f"queues/{queue}")["name"]
    page.goto("/audit/")
    page.get_by_label("Before or after").fill(name)
    page.get_by_role("button", name="Filter").click()
    entries = page.get_by_role("table", name="Audit entries").locator("tbody tr")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text(re.compile(f"admin.*create.*{name}", re.DOTALL))
    page.get_by_label("Who").fill("demo")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    expect(page.get_by_label("Before or after")).to_have_value(name)
