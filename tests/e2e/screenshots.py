"""`python -m tests.e2e.screenshots FOLDER`: the documentation's pictures, taken of the running demo."""

import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, expect, sync_playwright

from queuecore.testing.waiting import wait_until
from tests.e2e.browser import ARGUMENTS, browser_path, sign_in
from tests.system import RunningSystem

PAGES: Final = {
    "overview": "/",
    "queues": "/queues/",
    "pending-requests": "/pending-requests/",
    "alerts": "/alerts/",
    "alert-rules": "/alert-rules/",
    "services": "/services/",
    "partition-map": "/partitions/map/",
    "pipeline": "/pipeline/",
    "audit": "/audit/",
}
SIZE: Final = {"width": 1280, "height": 860}
# Spark starts beside everything else; on a busy machine that takes its time.
PATIENCE_S: Final = 900
# By then charts have something to show, and the archive is behind.
ENOUGH_LETTERS: Final = 80
ENOUGH_LAG: Final = 1_000
# What a page says while Spark has computed nothing, or nothing lately: it is not yet to be shown.
UNKNOWN: Final = re.compile("first figures|not known|no sample yet|Figures are .* old")
PASSWORD: Final = "correct horse battery"
# Two hosts, so that partitions are shared and moved.
SETTINGS: Final = {"SWITCHYARD_CONSUMER_HOSTS": "2"}


def main(folder: Path) -> None:
    path = browser_path()
    if path is None:
        raise SystemExit("Chromium is not installed; install the package chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, RunningSystem(Path(data), "--demo", environment=SETTINGS) as system:
        wait_until(lambda: len(system.get_all("dead-letters")) >= ENOUGH_LETTERS, PATIENCE_S)
        wait_until(lambda: any(one["lag_messages"] > ENOUGH_LAG for one in system.get_all("lag")), PATIENCE_S)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            pages = {**_furnish(browser, system), **PAGES}
            for scheme in ("light", "dark"):
                _take(browser, system, scheme, pages, folder)
            browser.close()


def _furnish(browser: Browser, system: RunningSystem) -> Mapping[str, str]:
    """What the demo has too little of; where pages of single things are."""
    queue, archive = _named(system, "queues", "Main"), _named(system, "queues", "Archive")
    groups = system.get_all("dead-letter-groups")
    group = next(one["id"] for one in groups if "DownstreamUnavailable" in one["exception_class"])
    system.request("POST", f"dead-letter-groups/{group}/note", {"note": "Billing was down from 14:00 to 14:20"})
    replay = {"filter": {"group": group, "state": "open"}, "rate_per_s": 0.5, "ramp": [1, 10]}
    rebalance = _move_partitions(system)
    started = system.request("POST", "replays", replay)
    tenant = _named(system, "tenants", "Noisy Neighbour Inc")
    return {
        "queue": f"/queues/{archive}/",
        "queue-charts": f"/queues/{archive}/#charts",
        "strategies": f"/queues/{queue}/change/#strategies-title",
        "dead-letters": "/dead-letters/?state=open",
        "dead-letter-group": f"/dead-letters/?state=open&group={group}",
        "replay": f"/operations/{started['operation']}/",
        "tenant": f"/tenants/{tenant}/",
        "isolation-request": _ask_for_queues(browser, system, tenant),
        "rebalance": f"/rebalances/{rebalance}/",
    }


def _move_partitions(system: RunningSystem) -> Any:
    """A rebalance that has something to move: one of the services gives all away, and comes back."""
    before = {one["id"] for one in system.get_all("rebalances")}
    service = system.get_all("services")[-1]["service_id"]
    system.request("POST", f"services/{service}/drain")
    made = wait_until(lambda: [one for one in system.get_all("rebalances") if one["id"] not in before], PATIENCE_S)[0]
    wait_until(lambda: system.request("GET", f"rebalances/{made['id']}")["state"] == "done", PATIENCE_S)
    system.request("POST", f"services/{service}/undrain")
    return made["id"]


def _named(system: RunningSystem, rows: str, name: str) -> Any:
    return next(one["id"] for one in system.get_all(rows) if one["name"] == name)


def _ask_for_queues(browser: Browser, system: RunningSystem, tenant: str) -> str:
    """As the tenant's own people: whoever asks does not decide."""
    user = {"name": "nora", "password": PASSWORD, "role": "tenant_admin", "tenant": tenant}
    system.request("POST", "users", user)
    context = browser.new_context(base_url=system.url)
    page = context.new_page()
    sign_in(page, PASSWORD, user["name"])
    page.goto(f"/tenants/{tenant}/isolate/")
    page.get_by_role("checkbox", name=re.compile("^Main")).check()
    page.locator("[data-queue=Main]").get_by_label("Partitions", exact=True).fill("4")
    page.get_by_label("Reason").fill("Bursts of 5,000 messages a second at night")
    page.get_by_role("button", name="Ask for it").click()
    expect(page.get_by_test_id("request-state")).to_be_visible()
    address = page.url.removeprefix(system.url)
    context.close()
    return address


def _take(browser: Browser, system: RunningSystem, scheme: str, pages: Mapping[str, str], folder: Path) -> None:
    context = browser.new_context(base_url=system.url, color_scheme=scheme, viewport=SIZE)  # type: ignore[arg-type]
    page = context.new_page()
    sign_in(page, system.password)
    for name, address in pages.items():
        page.goto(address)
        # Pages keep themselves up to date.
        expect(page.locator("main").get_by_text(UNKNOWN)).to_have_count(0, timeout=PATIENCE_S * 1000)
        page.wait_for_load_state("networkidle")
        # What has come since has moved what the address leads to.
        page.evaluate("location.hash && document.querySelector(location.hash)?.scrollIntoView()")
        page.screenshot(path=folder / f"{name}-{scheme}.png")
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
