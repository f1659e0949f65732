"""A tenant gets queues of its own: asked for with a preview, approved two clicks from the overview, seen active."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Tenants, clicks_on, count_clicks
from tests.system import RunningSystem

SECONDS = 1000
PATIENCE_MS = 30 * SECONDS
CARRIED_OUT_MS = 120 * SECONDS
PAGES = (
    "/",
    "/alerts/",
    "/queues/",
    "/dead-letters/",
    "/isolation-requests/",
    "/usage/",
    "/operations/",
    "/audit/",
    "/tokens/",
)


def test_a_tenant_asks_an_administrator_approves_and_both_see_it_active(page: Page, tenants: Tenants) -> None:
    own = tenants.page
    expect(own.get_by_role("heading", name=tenants.name)).to_be_visible()
    own.get_by_role("link", name="Request own queues").click()
    own.get_by_role("checkbox", name=re.compile("^Main")).check()
    own.locator("[data-queue=Main]").get_by_label("Partitions", exact=True).fill("2")
    # What would be made is told before anything is asked for.
    expect(own.locator("#preview")).to_contain_text(f"isolated.{tenants.id}.1")
    own.get_by_label("Reason").fill("bursts at night")
    own.get_by_role("button", name="Ask for it").click()
    expect(own.get_by_test_id("request-state")).to_have_text("Requested")
    count_clicks(page)
    page.goto("/")
    page.get_by_role("listitem").filter(has_text=tenants.name).get_by_role("link", name="Decide on it").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved: it is carried out now")).to_be_visible()
    assert clicks_on(page) == 2
    # Both pages follow it by themselves.
    for each in (own, page):
        expect(each.get_by_test_id("request-state")).to_have_text("Active", timeout=CARRIED_OUT_MS)
    own.get_by_role("link", name="Main").click()
    expect(own.get_by_text("of your own")).to_be_visible()


def test_the_picture_follows_the_strategy_that_is_asked_for(tenants: Tenants) -> None:
    tenants.page.goto(f"/tenants/{tenants.id}/isolate/")
    tenants.page.get_by_role("checkbox", name=re.compile("^Main")).check()
    main = tenants.page.locator("[data-queue=Main]")
    expect(main.get_by_role("figure")).to_contain_text("BURST and")
    main.get_by_label("Submit strategy").select_option("BATCH")
    expect(main.get_by_role("figure")).to_contain_text("BATCH and", timeout=PATIENCE_MS)


def test_what_was_asked_for_stays_where_it_is_refused(demo: RunningSystem, tenants: Tenants) -> None:
    page = tenants.page
    page.goto(f"/tenants/{tenants.id}/isolate/")
    chosen = page.get_by_role("checkbox", name=re.compile("^Main"))
    partitions = page.locator("[data-queue=Main]").get_by_label("Partitions", exact=True)
    preview, ask = page.locator("#preview"), page.get_by_role("button", name="Ask for it")
    chosen.check()
    partitions.fill("0")
    expect(preview).to_contain_text("Mend what is marked")
    page.get_by_label("Reason").fill("bursts at night")
    ask.click()
    expect(page.locator("[data-queue=Main] .error")).to_be_visible()
    expect(chosen).to_be_checked()
    expect(partitions).to_have_value("0")
    expect(page.get_by_label("Reason")).to_have_value("bursts at night")
    assert not demo.get_all(f"isolation-requests?tenant={tenants.id}")
    partitions.fill("2")
    expect(preview).to_contain_text(f"isolated.{tenants.id}.1")
    ask.click()
    expect(page.get_by_test_id("request-state")).to_have_text("Requested")
    page.get_by_role("link", name="Withdraw").click()
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Withdrawn: nothing was changed, and it can be asked for anew.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_a_tenant_is_wider_than_a_phone_and_none_complains(tenants: Tenants, scheme: str) -> None:
    tenants.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    tenants.page.set_viewport_size({"width": 375, "height": 800})
    for path in (*PAGES, f"/tenants/{tenants.id}/isolate/", "/tokens/new/"):
        tenants.page.goto(path)
        assert tenants.page.evaluate("document.documentElement.scrollWidth") == 375, path
