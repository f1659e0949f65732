"""Debian's Chromium, and the way in."""

import shutil
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
