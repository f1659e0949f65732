"""`python -m tests.e2e.screenshots FOLDER`: the documentation's pictures, taken of the running demo."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from queuecore.testing.waiting import wait_until
from tests.e2e.browser import ARGUMENTS, browser_path, sign_in
from tests.system import RunningSystem

PAGES = {
    "overview": "/",
    "queues": "/queues/",
    "dead-letters": "/dead-letters/",
    "pending-requests": "/pending-requests/",
    "alerts": "/alerts/",
    "alert-rules": "/alert-rules/",
    "services": "/services/",
}
SIZE = {"width": 1280, "height": 860}
FIRST_LAG_S = 180
ENOUGH_LETTERS = 8


def main(folder: Path) -> None:
    path = browser_path()
    if path is None:
        raise SystemExit("Chromium is not installed; install the package chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, RunningSystem(Path(data), "--demo") as system:
        wait_until(lambda: len(system.get_all("lag")) > 3, FIRST_LAG_S)
        wait_until(lambda: len(system.get_all("dead-letters")) >= ENOUGH_LETTERS, FIRST_LAG_S)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            for scheme in ("light", "dark"):
                _take(browser, system, scheme, folder)
            browser.close()


def _take(browser: Browser, system: RunningSystem, scheme: str, folder: Path) -> None:
    context = browser.new_context(base_url=system.url, color_scheme=scheme, viewport=SIZE)  # type: ignore[arg-type]
    page = context.new_page()
    sign_in(page, system.password)
    [main] = (one["id"] for one in system.get_all("queues") if one["name"] == "Main")
    for name, address in {**PAGES, "queue": f"/queues/{main}/"}.items():
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"{name}-{scheme}.png")
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
