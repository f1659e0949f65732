"""Forms of the console's pages as a browser sends them back, and what a person reads on a page."""

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any, Final

_BUTTONS: Final = ("submit", "button", "reset", "image")
_CHOICES: Final = ("checkbox", "radio")


def fields_of(page: str, action: str = "") -> dict[str, Any]:
    """What a browser would send of the form with nothing typed: of that which goes to `action`, else of the largest.
    What was chosen of several is a list."""
    parser = _Forms()
    parser.feed(page)
    forms = [form for form in parser.forms if form["action"] == action] if action else parser.forms
    largest: dict[str, list[str]] = max((form["fields"] for form in forms), key=len)
    sent = {name: values for name, values in largest.items() if values and name != "csrfmiddlewaretoken"}
    return {name: values[0] if len(values) == 1 else values for name, values in sent.items()}


def confirm(client: Any, address: str, typed: dict[str, Any]) -> Any:
    """What comes of it once its plan was shown, and confirmed. Where it is refused, the page that says so."""
    plan = client.post(address, typed)
    if plan.status_code != 200 or not plan.context["planned"]:
        return plan
    return client.post(address, {**fields_of(plan.content.decode()), "confirm": "yes"}, follow=True)


def words_of(answer: Any) -> str:
    """What a person reads, on one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []
        self._in_form, self._select, self._textarea = False, "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._in_form = True
            self.forms.append({"action": told.get("action", ""), "fields": {}})
        elif not self._in_form or "disabled" in told:
            return
        elif tag == "input" and told.get("name"):
            self._input(told)
        elif tag == "select":
            self._select, self._first = told["name"], None
            self._values(told["name"])
        elif tag == "option" and self._select:
            if self._first is None:
                self._first = told.get("value", "")
            if "selected" in told:
                self._values(self._select).append(told.get("value", ""))
        elif tag == "textarea":
            self._textarea = told["name"]
            self._values(told["name"]).append("")

    def handle_data(self, data: str) -> None:
        if self._textarea:
            self._values(self._textarea)[-1] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._in_form = False
        elif tag == "textarea":
            self._textarea = ""
        elif tag == "select" and self._select:
            if not self._values(self._select) and self._first is not None:
                self._values(self._select).append(self._first)
            self._select = ""

    def _input(self, told: dict[str, str]) -> None:
        kind = told.get("type", "text")
        if kind in _BUTTONS or (kind in _CHOICES and "checked" not in told):
            return
        self._values(told["name"]).append(told.get("value", "on" if kind in _CHOICES else ""))

    def _values(self, name: str) -> list[str]:
        values: list[str] = self.forms[-1]["fields"].setdefault(name, [])
        return values
