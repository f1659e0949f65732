"""Every page that links lead to, looked at: whether anybody can read it, on a phone and on a wall as well, whether it
stays here, and how many bytes it takes.

Pages are found by following links from the first one, a page of each kind once. What `console/urls.py` has and no link
leads to is told by `unreached`: a new page cannot be forgotten here, unless `NO_PAGES` says why.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from axe_playwright_python.sync_playwright import Axe
from django.urls import Resolver404, URLPattern, resolve, reverse
from playwright.sync_api import ConsoleMessage, Page, Request, Response

from console.urls import urlpatterns

PHONE = {"width": 375, "height": 800}
DESK = {"width": 1280, "height": 900}
WALL = {"width": 2560, "height": 1440}
# WCAG up to 2.2 at its level AA.
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
# What another scheme of colours changes.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
# What a browser that has been here before gets for a page: all that comes over the wire, compressed as it is there.
MOST_BYTES: Final = 50_000
# Addresses that are no page to be walked, and why.
NO_PAGES: Final = {
    "health": "for machines",
    "metrics": "for machines",
    "login": "looked at by whoever has not signed in",
    "logout": "nothing is there to be seen, and whoever goes there is gone",
}
# What only takes a form, and leads back to a page that is walked.
LEADING_BACK: Final = frozenset((
    "acknowledge_alert", "activate_queue", "approve_isolation", "comment_isolation", "note_group", "note_letter",
    "pause_operation", "pause_queue", "refuse_isolation", "resume_operation", "resume_queue", "silence_alert",
    "test_alert_channel",
))  # fmt: skip
# What the browser's console says of an answer; the answer itself is looked at.
_STATUS: Final = "the server responded with a status of"
_NOBODY: dict[str, Any] = {"UUIDConverter": UUID(int=0), "IntConverter": 0, "StringConverter": "none"}
_LINKS = """[...document.querySelectorAll("a[href], [hx-get]")].map(
    (each) => each.getAttribute("href") ?? each.getAttribute("hx-get")
)"""

# Tables that are wider than their place, by what they are called.
_SCROLLING = """[...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth).map(
    (each) => each.ariaLabel
)"""

# Columns that are there for others only.
_HIDDEN = """[...document.querySelectorAll("th, td")].filter(
    (each) => each.closest("table").checkVisibility() && !each.checkVisibility()
).map((each) => each.textContent.trim())"""

_SEND = """([address, fields]) => {
    const form = document.createElement("form")
    Object.assign(form, {method: "post", action: address})
    const token = document.querySelector("[name=csrfmiddlewaretoken]").value
    for (const [name, value] of Object.entries({csrfmiddlewaretoken: token, ...fields})) {
        form.append(Object.assign(document.createElement("input"), {type: "hidden", name, value}))
    }
    document.body.append(form)
    form.submit()
}"""


def page_names() -> set[str]:
    """All addresses of the console, by their names: pages, parts of pages and what only takes a POST."""
    return {one.name for one in urlpatterns if isinstance(one, URLPattern) and one.name} - NO_PAGES.keys()


@dataclass
class Walk:
    """Of somebody who is signed in on this page. `closed` is what does not open for them."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    closed: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    _received: int = 0

    def __post_init__(self) -> None:
        network = self.page.context.new_cdp_session(self.page)
        network.send("Network.enable")
        network.on("Network.loadingFinished", self._receive)
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("request", self._check_host)
        self.page.on("response", self._check_status)

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
        """Light, dark, on a wall and on a phone."""
        self._prepare()
        self.weigh(path)
        self._look(path)

    def look_at_on_a_phone(self, path: str) -> None:
        self.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        self.weigh(path)
        self._judge(path, "phone", RULES)

    def look_at_opened(self, what: str) -> None:
        """The page as it is now."""
        self._judge(self.page.url, what, RULES)

    def look_at_answer(self, name: str, **fields: str) -> None:
        """The page that comes of a form, likewise."""
        self._prepare()
        self.page.goto("/")
        address = reverse(name)
        with self.page.expect_navigation():
            self.page.evaluate(_SEND, [address, fields])
        self.page.wait_for_load_state("networkidle")
        if urlsplit(self.page.url).path == address:
            self.seen[name] = address
        self._look(address)

    def _prepare(self) -> None:
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(DESK)  # type: ignore[arg-type]

    def _look(self, path: str) -> None:
        page = self.page
        self._judge(path, "light", RULES)
        page.emulate_media(color_scheme="dark")
        self._judge(path, "dark", COLOURS)
        self._measure(path, WALL)
        for name in page.evaluate(_SCROLLING):
            self._note(f"{path}: {name}, where there is room for all of it")
        self._measure(path, PHONE)
        for text in page.evaluate(_HIDDEN):
            self._note(f"{path}: a phone does not show {text!r}")

    def _measure(self, path: str, size: dict[str, int]) -> None:
        self.page.set_viewport_size(size)  # type: ignore[arg-type]
        width = self.page.evaluate("document.documentElement.scrollWidth")
        if width > size["width"]:
            self._note(f"{path} is {width} px wide in a window of {size['width']}")

    def weigh(self, path: str) -> int:
        """Opens it; how many bytes came, with its scripts and styles where the browser does not have them yet."""
        self._received = 0
        self.page.goto(path)
        self.page.wait_for_load_state("networkidle")
        self.sizes[path] = self._received
        return self._received

    def heavy(self) -> dict[str, int]:
        """Pages of more bytes than one may have."""
        return {path: size for path, size in self.sizes.items() if size > MOST_BYTES}

    def unreached(self, names: Collection[str] | None = None) -> list[str]:
        """Of these addresses, or of all, those that were not walked and do not lead back to one that was."""
        expected = page_names() if names is None else page_names() & set(names)
        left = sorted(expected - self.seen.keys() - self.parts)
        return [name for name in left if name not in LEADING_BACK or self._has_page(name)]

    def refused(self) -> set[str]:
        """All that whoever looks may not see, whether a link leads there or not."""
        return {name for name in page_names() if self._status_of_nobodys(name) == 403}

    def _has_page(self, name: str) -> bool:
        return self._status_of_nobodys(name) != 405

    def _status_of_nobodys(self, name: str) -> int:
        """What this address answers of something that is not there."""
        [pattern] = (one for one in urlpatterns if isinstance(one, URLPattern) and one.name == name)
        given = {key: _NOBODY[type(kind).__name__] for key, kind in pattern.pattern.converters.items()}
        return self.page.request.get(reverse(name, kwargs=given)).status

    def _judge(self, path: str, scheme: str, rules: dict[str, Any]) -> None:
        found = Axe().run(self.page, options=rules)
        for violation in found.response["violations"]:
            for node in violation["nodes"][:3]:
                self._note(f"{path} ({scheme}): {violation['id']}: {node['html'][:200]} {_why(node)}")

    def _receive(self, finished: dict[str, Any]) -> None:
        self._received += int(finished["encodedDataLength"])

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type == "error" and _STATUS not in message.text:
            self._note(f"{self.page.url}: {message.text}")

    def _check_host(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self._note(f"{self.page.url} asks another host: {request.url}")

    def _check_status(self, response: Response) -> None:
        """Nothing is refused but a page that `closed` tells of; a part of a page is there once it was answered."""
        name = _name_of(urlsplit(response.url).path)
        is_page = response.request.is_navigation_request()
        if response.status >= 400 and not (is_page and response.status == 403 and name in self.closed):
            self._note(f"{self.page.url}: {response.request.method} {response.url} answers {response.status}")
        elif response.ok and name and response.request.resource_type in ("xhr", "fetch"):
            self.parts.add(name)

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
