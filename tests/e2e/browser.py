"""Debian's Chromium, and the way in."""

import shutil
from collections.abc import Callable
from typing import NamedTuple

from playwright.sync_api import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# What Debian's Chromium needs to run for root, without asking the network for anything.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# By a pointer: keys press buttons as well.
_COUNT = """addEventListener("click", (event) => {
    if (event.detail) sessionStorage.clicks = 1 + Number(sessionStorage.clicks ?? 0)
}, true)"""


class Person(NamedTuple):
    """Somebody who has an account, and a page of theirs."""

    name: str
    page: Page


# Makes somebody new of a role.
People = Callable[[str], Person]


class Tenants(NamedTuple):
    """A tenant of the test's own, and a page of its administrator."""

    name: str
    id: str
    page: Page


def browser_path() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def sign_in(page: Page, password: str, name: str = "admin") -> None:
    page.goto("/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("/")


def count_clicks(page: Page) -> None:
    """From the next page on."""
    page.add_init_script(_COUNT)


def clicks_on(page: Page) -> int:
    """How many were counted, whatever pages they led through."""
    return int(page.evaluate("sessionStorage.clicks ?? 0"))
