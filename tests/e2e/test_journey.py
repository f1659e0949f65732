"""A message's whole journey: published, failed, seen, sent again, handled. And the lag that Spark computes."""

import re
from urllib.parse import urlsplit
from uuid import uuid4

from playwright.sync_api import Page, expect

from queueapi.rest.v1.tags import TAGS
from queuecore.topics import SYSTEM_TENANT
from tests.system import RunningSystem

SECONDS = 1000
FIRST_LAG_MS = 180 * SECONDS
LETTER_MS = 60 * SECONDS


def publish_failing(system: RunningSystem) -> str:
    """Publish a reading that fails until it is replayed; its entity."""
    entity = str(uuid4())
    payload = {"sensor": 7, "temperature": 20.5, "fault": "until_replayed"}
    # Of no tenant that another test gives queues of its own.
    body = {"tenant": str(SYSTEM_TENANT), "entity": entity, "payload": payload}
    answer = system.request("POST", "queues/main/messages", body)
    assert answer["offset"] >= 0
    assert answer["topic"] == f"tb_rule_engine.{answer['partition']}"
    return entity


def test_a_failed_message_is_replayed_from_the_browser(demo: RunningSystem, page: Page) -> None:
    entity = publish_failing(demo)

    def letter_listed() -> None:
        page.goto(f"/dead-letters/?q={entity}")
        expect(page.get_by_role("row", name=re.compile("DownstreamUnavailable"))).to_have_count(1, timeout=2 * SECONDS)

    eventually(letter_listed, LETTER_MS)
    page.get_by_role("row", name=re.compile("DownstreamUnavailable")).get_by_role("link").first.click()
    expect(page.get_by_text("billing service answered 503 for sensor 7").first).to_be_visible()
    letter = page.url
    page.get_by_role("button", name="Replay…").click()
    expect(page.get_by_role("heading", name="1 message will be sent again")).to_be_visible()
    page.get_by_role("button", name="Replay 1 letter").click()
    expect(page).to_have_url(re.compile("/operations/"))
    page.goto(letter)
    expect(page.get_by_test_id("letter-state")).to_have_text("Replayed", timeout=LETTER_MS)
    # Back to the list as it was filtered.
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"/dead-letters/\\?q={entity}$"))


def test_the_overview_shows_lag_computed_by_spark_and_dead_letters(demo: RunningSystem, page: Page) -> None:
    page.goto("/")
    expect(page.get_by_text(re.compile(r"as of \d\d:\d\d:\d\d UTC", re.IGNORECASE)).first).to_be_visible(
        timeout=FIRST_LAG_MS
    )
    page.get_by_role("link", name=re.compile("All [0-9]+ queues")).click()
    row = page.get_by_role("row", name=re.compile("Core"))
    expect(row).to_be_visible()
    lag = [row for row in demo.get_all("lag") if row["topic"].startswith("tb_core.")]
    assert len(lag) == 3
    assert all(row["as_of"] and row["end_offset"] >= 0 for row in lag)


def test_the_rest_interface_is_documented_without_another_host(page: Page) -> None:
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.get_by_role("link", name="REST interface").click()
    groups = page.locator(".opblock-tag")
    # The description is made when it is asked for.
    expect(groups).to_have_count(len(TAGS), timeout=30 * SECONDS)
    groups.filter(has=page.get_by_text("queues", exact=True)).click()
    expect(page.get_by_text("/api/v1/queues/{queue}/messages", exact=True).first).to_be_visible()
    call_from_the_documentation(page, "queues_list")
    call_from_the_documentation(page, "queues_create", dry_run="true")
    assert len(hosts) == 1


def call_from_the_documentation(page: Page, name: str, **choices: str) -> None:
    """With the examples that it shows."""
    operation = page.locator(f"#operations-queues-{name}")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    for parameter, value in choices.items():
        operation.locator(f"tr[data-param-name={parameter}] select").select_option(value)
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table tbody .response-col_status")).to_contain_text(
        "200", timeout=30 * SECONDS
    )


def test_no_page_is_wider_than_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 800})
    for path in ("/", "/queues/", "/dead-letters/", "/operations/", "/audit/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") == 375, path


def eventually(check, timeout_ms: int) -> None:
    """Repeat a check that has its own waiting until it holds."""
    tries = max(1, timeout_ms // (2 * SECONDS))
    for left in reversed(range(tries)):
        try:
            return check()
        except AssertionError:
            if not left:
                raise
    return None
