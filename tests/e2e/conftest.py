"""A real browser on the real system."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.browser import ARGUMENTS, People, Person, Tenants, browser_path, sign_in
from tests.services import require_or_skip
from tests.system import RunningSystem

PASSWORD = "correct horse battery"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Systems of others are over before the demo starts: two of them are too much for two cores."""
    items.sort(key=lambda item: "demo" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """The demo, running for all browser tests, and no longer: others want the machine."""
    if shutil.which("java") is None:
        require_or_skip("Java 17 is not installed, so Spark cannot compute the lag; install openjdk-17-jre-headless")
    settings = {"SWITCHYARD_WEBHOOK_ALLOW_PRIVATE": "true", "SWITCHYARD_ALERT_INTERVAL_S": "2"}
    with RunningSystem(tmp_path_factory.mktemp("demo"), "--demo", environment=settings) as system:
        system.wait_for_demo()
        yield system


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all browser tests, and no longer: while it is open, an event loop runs in the tests' thread."""
    path = browser_path()
    if path is None:
        require_or_skip("Chromium is not installed; install the package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def signed_in(browser: Browser, system: RunningSystem, password: str, name: str = "admin") -> Iterator[Page]:
    """A page signed in so. Whatever the browser's console complains about fails the test."""
    context = browser.new_context(base_url=system.url)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    sign_in(page, password, name)
    yield page
    context.close()
    assert not complaints


@pytest.fixture
def page(browser: Browser, demo: RunningSystem) -> Iterator[Page]:
    """A page of the administrator."""
    with signed_in(browser, demo, demo.password) as page:
        yield page


@pytest.fixture
def people(browser: Browser, demo: RunningSystem) -> Iterator[People]:
    """As `page`, of somebody new of a role, as often as it is called."""
    with ExitStack() as pages:

        def arrive(role: str) -> Person:
            name = f"{role}-{uuid4().hex[:8]}"
            demo.request("POST", "users", {"name": name, "password": PASSWORD, "role": role})
            return Person(name, pages.enter_context(signed_in(browser, demo, PASSWORD, name)))

        yield arrive


@pytest.fixture
def tenants(browser: Browser, demo: RunningSystem) -> Iterator[Tenants]:
    """As `page`, of a tenant's people."""
    name = f"Foundry {uuid4().hex[:8]}"
    tenant = demo.request("POST", "tenants", {"name": name})["id"]
    user = {"name": f"gus-{uuid4().hex[:8]}", "password": PASSWORD, "role": "tenant_admin", "tenant": tenant}
    demo.request("POST", "users", user)
    with signed_in(browser, demo, PASSWORD, user["name"]) as page:
        yield Tenants(name, tenant, page)
