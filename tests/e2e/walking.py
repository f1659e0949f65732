"""Every page that links lead to, looked at: whether anybody can read it, on a phone as well, and whether it stays here.

Pages are found by following links from the first one, a page of each kind once. What `console/urls.py` has and no link
leads to is told by `unreached`: a new page cannot be forgotten here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from axe_playwright_python.sync_playwright import Axe
from django.urls import Resolver404, URLPattern, resolve, reverse
from playwright.sync_api import ConsoleMessage, Page, Request

from console.urls import urlpatterns

PHONE = {"width": 375, "height": 800}
DESK = {"width": 1280, "height": 900}
# WCAG up to 2.2 at its level AA.
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
# What another scheme of colours changes.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
ELSEWHERE = ("health", "metrics", "login", "logout")
_NOBODY: dict[str, Any] = {"UUIDConverter": UUID(int=0), "IntConverter": 0, "StringConverter": "none"}
_LINKS = """[...document.querySelectorAll("a[href], [hx-get]")].map(
    (each) => each.getAttribute("href") ?? each.getAttribute("hx-get")
)"""


def page_names() -> set[str]:
    """All addresses of the console, by their names: pages, parts of pages and what only takes a POST."""
    return {one.name for one in urlpatterns if isinstance(one, URLPattern) and one.name} - set(ELSEWHERE)


@dataclass
class Walk:
    """Of somebody who is signed in on this page. `closed` is what does not open for them."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    closed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("request", self._check_host)

    def all_pages(self, *firsts: str) -> "Walk":
        waiting = [*firsts]
        while waiting:
            path = waiting.pop(0)
            name = _name_of(path)
            if name is None or name in {*self.seen, *self.parts, *self.closed}:
                continue
            if self._opens(name, path):
                self.seen[name] = path
                self.look_at(path)
                waiting += self.page.evaluate(_LINKS)
        return self

    def _opens(self, name: str, path: str) -> bool:
        answer = self.page.request.get(path)
        if answer.status == 403:
            self.closed[name] = path
        elif not answer.ok:
            self._note(f"{path} answers {answer.status}")
        elif "<html" not in answer.text():
            self.parts.add(name)
        else:
            return True
        return False

    def look_at(self, path: str) -> None:
        """Light, dark and on a phone."""
        page = self.page
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(DESK)  # type: ignore[arg-type]
        page.goto(path)
        page.wait_for_load_state("networkidle")
        self._judge(path, "light", RULES)
        page.emulate_media(color_scheme="dark")
        self._judge(path, "dark", COLOURS)
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            self._note(f"{path} is {width} px wide on a phone")

    def unreached(self) -> list[str]:
        """Addresses that are no page of those walked, and answer a GET."""
        return [name for name in sorted(page_names() - self.seen.keys() - self.parts) if self._has_page(name)]

    def _has_page(self, name: str) -> bool:
        [pattern] = (one for one in urlpatterns if isinstance(one, URLPattern) and one.name == name)
        given = {key: _NOBODY[type(kind).__name__] for key, kind in pattern.pattern.converters.items()}
        return self.page.request.get(reverse(name, kwargs=given)).status != 405

    def _judge(self, path: str, scheme: str, rules: dict[str, Any]) -> None:
        found = Axe().run(self.page, options=rules)
        for violation in found.response["violations"]:
            for node in violation["nodes"][:3]:
                self._note(f"{path} ({scheme}): {violation['id']}: {node['html'][:200]} {_why(node)}")

    def _listen(self, message: ConsoleMessage) -> None:
        """What is closed is told by `closed`, not by the browser."""
        if message.type == "error" and "a status of 403" not in message.text:
            self._note(f"{self.page.url}: {message.text}")

    def _check_host(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self._note(f"{self.page.url} asks another host: {request.url}")

    def _note(self, complaint: str) -> None:
        self.complaints.append(complaint)


def _name_of(link: str) -> str | None:
    """None for what is no page of the console."""
    parts = urlsplit(link)
    if parts.netloc or not parts.path.startswith("/"):
        return None
    try:
        name = resolve(parts.path).url_name
    except Resolver404:
        return None
    return name if name in page_names() else None


def _why(node: dict[str, Any]) -> str:
    return "; ".join(_messages(node))


def _messages(node: dict[str, Any]) -> Iterator[str]:
    for check in (*node["any"], *node["all"], *node["none"]):
        yield check["message"]
