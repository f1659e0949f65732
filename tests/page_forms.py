"""Forms of the console's pages as a browser sends them back, and what a person reads on a page."""

import re
from collections import defaultdict
from collections.abc import Mapping
from html import unescape
from html.parser import HTMLParser
from typing import Any, Final

from django.test import Client

_FORM: Final = re.compile(r"<form\b.*?</form>", re.DOTALL)
_BUTTONS: Final = ("submit", "button", "reset", "image")
_CHOICES: Final = ("checkbox", "radio")
_PLANNED: Final = 'name="planned"'


def fields_of(page: str, holding: str = "") -> dict[str, Any]:
    """What a browser would send of a form with nothing typed: of the first that holds this, else of the largest.
    What was chosen of several is a list."""
    forms = _forms(page, holding)[: 1 if holding else None]
    largest = max((_Fields(form).sent for form in forms), key=len)
    sent = {name: values for name, values in largest.items() if values and name != "csrfmiddlewaretoken"}
    return {name: values[0] if len(values) == 1 else values for name, values in sent.items()}


def first_button(page: str, holding: str) -> str:
    """What is pressed by Enter in a field of that form: its first button that sends it."""
    buttons: list[str] = re.findall(r"<button\b[^>]*>[^<]*", _forms(page, holding)[0])
    return next(tag for tag in buttons if 'type="button"' not in tag).partition(">")[2].strip()


def confirm(browser: Client, address: str, typed: Mapping[str, Any]) -> Any:
    """What comes of it once its plan was shown, and confirmed; where that offers nothing to confirm, all the same.
    Where it is refused before, the page that says so."""
    plan: Any = browser.post(address, typed)
    if plan.status_code != 200 or not plan.context["planned"]:
        return plan
    page = plan.content.decode()
    held = fields_of(page, _PLANNED) if _PLANNED in page else typed
    return browser.post(address, {**held, "planned": plan.context["planned"], "confirm": "yes"}, follow=True)


def words_of(answer: Any) -> str:
    """What a person reads, on one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


def _forms(page: str, holding: str) -> list[str]:
    return [form for form in _FORM.findall(page) if holding in form]


class _Fields(HTMLParser):
    """Of one form, without what is off and without buttons."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.sent: defaultdict[str, list[str]] = defaultdict(list)
        self._fieldsets: list[bool] = []
        self._select, self._textarea = "", ""
        self.feed(form)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if tag == "fieldset":
            self._fieldsets.append("disabled" in told)
        elif "disabled" in told or any(self._fieldsets):
            return
        elif tag == "input" and told.get("name"):
            self._input(told)
        elif tag == "select":
            self._select, self._first = told["name"], None
        elif tag == "option" and self._select:
            if self._first is None:
                self._first = told.get("value", "")
            if "selected" in told:
                self.sent[self._select].append(told.get("value", ""))
        elif tag == "textarea":
            self._textarea = told["name"]
            self.sent[told["name"]].append("")

    def handle_data(self, data: str) -> None:
        if self._textarea:
            self.sent[self._textarea][-1] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "fieldset":
            self._fieldsets.pop()
        elif tag == "textarea":
            self._textarea = ""
        elif tag == "select" and self._select:
            if self._select not in self.sent and self._first is not None:
                self.sent[self._select].append(self._first)
            self._select = ""

    def _input(self, told: dict[str, str]) -> None:
        kind = told.get("type", "text")
        if kind not in _BUTTONS and (kind not in _CHOICES or "checked" in told):
            self.sent[told["name"]].append(told.get("value", "on" if kind in _CHOICES else ""))
