"""What a browser would send of a page's form, with nothing typed."""

import html
import re
from collections.abc import Mapping
from typing import Any, Final

from django.test import Client

_FORM: Final = re.compile(r"<form\b.*?</form>", re.DOTALL)
_OFF: Final = re.compile(r"<fieldset\b[^>]* disabled\b.*?</fieldset>", re.DOTALL)
_TEXTAREA: Final = re.compile(r'<textarea name="([\w-]+)"[^>]*>\s*(.*?)</textarea>', re.DOTALL)
_SELECT: Final = re.compile(r'<select name="([\w-]+)".*?>(.*?)</select>', re.DOTALL)


def fields_of(page: str, holding: str) -> dict[str, str]:
    """Of the first form that holds this, without what is off and without buttons."""
    [form, *_] = [form for form in _FORM.findall(page) if holding in form]
    form = _OFF.sub("", form)
    sent = {}
    for tag in re.findall(r"<input[^>]*>", form):
        told = dict(re.findall(r'([a-z]+)="([^"]*)"', tag))
        is_choice = told.get("type") in ("checkbox", "radio")
        if "name" in told and " disabled" not in tag and (not is_choice or " checked" in tag):
            sent[told["name"]] = html.unescape(told.get("value", "on" if is_choice else ""))
    for name, inner in _SELECT.findall(form):
        chosen = re.search(r'<option value="([^"]*)" selected', inner)
        sent[name] = chosen[1] if chosen else re.findall(r'<option value="([^"]*)"', inner)[0]
    for name, inner in _TEXTAREA.findall(form):
        sent[name] = html.unescape(inner).strip()
    sent.pop("csrfmiddlewaretoken", None)
    return sent


def first_button(page: str, holding: str) -> str:
    """What is pressed by Enter in a field of that form: its first button that sends it."""
    [form, *_] = [form for form in _FORM.findall(page) if holding in form]
    buttons = [tag for tag in re.findall(r"<button\b[^>]*>[^<]*", form) if 'type="button"' not in tag]
    return buttons[0].partition(">")[2].strip()


def confirm(browser: Client, address: str, chosen: Mapping[str, Any]) -> Any:
    """What is answered to who carries out what the plan of just this was shown for."""
    plan = browser.post(address, chosen)
    return browser.post(address, {**chosen, "planned": plan.context["planned"], "confirm": "yes"})
