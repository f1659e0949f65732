"""A dead letter's message as people mend it: its key, headers and payload as text, and what they changed."""

import base64
import binascii
import difflib
import json
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError

from console.replay_forms import LONGEST_REASON
from queueapi.actions.messages import MAX_PAYLOAD_BYTES
from queueapi.selectors.message_shapes import readable
from queuecore.messages import Key, QueueMessage

# A longer payload is mended over REST, as a file.
MOST_EDITED_BYTES: Final = 256 * 1024
# As many lines that stayed are shown around those that changed.
_AROUND: Final = 3
_MOST_LINES: Final = 1_000
_BASE64: Final = "base64:"
_FORMS: Final = [("json", "JSON"), ("text", "Text"), ("base64", "Base64")]


class EditForm(forms.Form):
    key = forms.CharField(
        required=False,
        max_length=4_000,
        help_text="A UUID, or base64: and bytes. It says where the message goes, and in which order.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "mono"}),
    )
    headers = forms.CharField(
        required=False,
        strip=False,
        help_text="One on a line, as name: value. A value that is no text is written as base64: and its bytes.",
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false", "class": "mono"}),
    )
    form = forms.ChoiceField(label="Payload is", choices=_FORMS, widget=forms.RadioSelect)
    payload = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false", "class": "mono"}),
    )
    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        help_text="The ledger keeps it, with your name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "the unit was missing"}),
    )
    # When the edit was made that this one is to replace; empty: there was none.
    seen = forms.DateTimeField(required=False, widget=forms.HiddenInput)

    def __init__(self, base: QueueMessage, *args: Any, **kwargs: Any) -> None:
        """`base` is what the form began with: what nobody touched stays as it is, to the byte."""
        super().__init__(*args, **kwargs)
        self._base = base

    def clean_key(self) -> Key:
        text = self.cleaned_data["key"]
        if not text:
            return None
        if text.startswith(_BASE64):
            return _decoded(text.removeprefix(_BASE64))
        try:
            return UUID(text)
        except ValueError as error:
            raise ValidationError("This is no UUID. Bytes are written as base64: and their base64.") from error

    def clean_headers(self) -> dict[str, bytes]:
        headers: dict[str, bytes] = {}
        for line in filter(str.strip, self.cleaned_data["headers"].splitlines()):
            name, colon, value = line.partition(":")
            if not colon or not name.strip():
                raise ValidationError(f"{line[:100]!r} is no header: write name: value.")
            headers[name.strip()] = _header(value.removeprefix(" "))
        return headers

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if "form" in values:
            try:
                values["data"] = self._data(values["form"], values["payload"].replace("\r\n", "\n"))
            except ValidationError as error:
                self.add_error("payload", error)
        return values

    def _data(self, kind: str, text: str) -> bytes:
        is_untouched = (kind, text) == _shown_payload(self._base.data)
        return self._base.data if is_untouched else _payload(kind, text)

    @property
    def message(self) -> QueueMessage:
        values = self.cleaned_data
        return QueueMessage(values["key"], values["data"], values["headers"])


class RevertForm(forms.Form):
    """What is dropped is the edit that was shown."""

    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        help_text="The ledger keeps it, with your name.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    seen = forms.DateTimeField(required=False, widget=forms.HiddenInput)


@dataclass(frozen=True, slots=True)
class Line:
    """Of a comparison: what is gone, what came, or what stayed."""

    kind: Literal["del", "ins", "same", "gap"]
    text: str


def shown(message: QueueMessage) -> dict[str, str]:
    """A message as the form has it. JSON is indented: that is compared line by line."""
    kind, payload = _shown_payload(message.data)
    headers = "\n".join(f"{name}: {_told(value)}" for name, value in sorted(message.headers.items()))
    return {"key": _shown_key(message.key), "headers": headers, "form": kind, "payload": payload}


def compared(before: QueueMessage, after: QueueMessage) -> list[Line]:
    """What would be sent otherwise, with some of what stays around it; empty where nothing would."""
    first, then = ("\n".join(_lines(shown(one))).splitlines() for one in (before, after))
    changes = list(difflib.unified_diff(first, then, n=_AROUND, lineterm=""))[2:]
    lines, more = [_line(text) for text in changes[:_MOST_LINES]], len(changes) - _MOST_LINES
    return [*lines, Line("gap", f"and {more:,} lines more, which are not shown")] if more > 0 else lines


def _lines(parts: dict[str, str]) -> list[str]:
    return [f"key: {parts['key'] or '(none)'}", *parts["headers"].splitlines(), "", parts["payload"]]


def _line(text: str) -> Line:
    if text.startswith("@@"):
        return Line("gap", text)
    kinds: dict[str, Literal["del", "ins"]] = {"-": "del", "+": "ins"}
    return Line(kinds.get(text[:1], "same"), text[1:])


def _shown_key(key: Key) -> str:
    return f"{_BASE64}{base64.b64encode(key).decode()}" if isinstance(key, bytes) else str(key or "")


def _shown_payload(data: bytes) -> tuple[str, str]:
    """As a browser sends it back: with no other line ends."""
    text = readable(data, is_cut=False)
    if text is None or "\r" in text:
        return "base64", base64.encodebytes(data).decode()
    try:
        return "json", json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "text", text


def _told(value: bytes) -> str:
    """Text where it would be read as the same bytes again."""
    text = readable(value, is_cut=False)
    if text is None or len(text.splitlines()) > 1 or text != text.strip() or text.startswith(_BASE64):
        return _BASE64 + base64.b64encode(value).decode()
    return text


def _header(text: str) -> bytes:
    return _decoded(text.removeprefix(_BASE64)) if text.startswith(_BASE64) else text.encode()


def _payload(kind: str, text: str) -> bytes:
    if kind == "base64":
        data = _decoded("".join(text.split()))
    elif kind == "text":
        data = text.encode()
    else:
        data = text.encode()
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"This is not JSON: {error}. Mend it, or send it as text.") from error
    if len(data) > MAX_PAYLOAD_BYTES:
        raise ValidationError(f"The payload has {len(data):,} bytes; {MAX_PAYLOAD_BYTES:,} is the most.")
    return data


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValidationError(f"This is not base64: {error}.") from error
