"""What a page of the console offers whoever reads it: where its links lead, what its buttons send, and what is off."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin, urlsplit

_VOID: Final = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    form: "Element | None"
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    @property
    def label(self) -> str:
        return self.text or self.attributes.get("aria-label", "") or f"<{self.tag}>"

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()


@dataclass(frozen=True)
class Offer:
    """Something to follow or to press.

    method     "get" or "post"
    path       what it asks for, without what is asked of it
    is_led_to  whether it is a link that looks as a button does
    """

    label: str
    method: str
    path: str
    is_led_to: bool


class Page(HTMLParser):
    """A page that was asked for at this address."""

    def __init__(self, address: str, html: str) -> None:
        super().__init__()
        self._address = address
        self._elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)

    def offers(self) -> Iterator[Offer]:
        """Of what leads out of the page, or back to it."""
        for element in self._elements:
            for method, address in _asked_by(element):
                path = urlsplit(urljoin(self._address, address)).path
                yield Offer(element.label, method, path, element.tag == "a" and "button" in element.classes)

    def unexplained(self) -> list[str]:
        """What is off where nobody can read why: not who points at it, or not who does not."""
        return [element.label for element in self._off() if not self._is_explained(element)]

    def off(self) -> list[str]:
        """What is off."""
        return [element.label for element in self._off()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        form = next((element for element in reversed(self._open) if element.tag == "form"), None)
        element = Element(tag, {name: value or "" for name, value in attrs}, form)
        self._elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if any(element.tag == tag for element in self._open):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.words.append(data)

    def _off(self) -> list[Element]:
        """Buttons, boxes, and links that lead nowhere."""
        return [
            each
            for each in self._elements
            if {"disabled", "aria-disabled"} & each.attributes.keys() or "off" in each.classes
        ]

    def _is_explained(self, element: Element) -> bool:
        """The title is for who points at it. What is off gets no focus: others read what it is described by."""
        told_by = element.attributes.get("aria-describedby", "")
        told = [each for each in self._elements if each.attributes.get("id") == told_by and told_by]
        return bool(element.attributes.get("title")) and len(told) == 1 and bool(told[0].text)


def _asked_by(element: Element) -> Iterator[tuple[str, str]]:
    """Method and address."""
    asked = element.attributes
    for method in ("get", "post"):
        if f"hx-{method}" in asked:
            yield method, asked[f"hx-{method}"]
    if element.tag == "a" and not asked.get("href", "#").startswith("#"):
        yield "get", asked["href"]
    if element.tag == "button" and element.form and asked.get("type") != "button" and "disabled" not in asked:
        form = element.form.attributes
        method = asked.get("formmethod") or form.get("method", "get")
        if method != "dialog":
            yield method.lower(), asked.get("formaction") or form.get("action", "")
