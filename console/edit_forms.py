"""A dead letter's message as people mend it: its key, headers and payload as text, and what they changed."""

import base64
from typing import Any, Final
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError

from console.comparing import Line, compared_lines
from console.fields import TimeField
from console.payload_forms import Written, as_typed, choices, decoded_base64, name_of, typed, written
from console.replay_forms import LONGEST_REASON
from queueapi.selectors.message_shapes import PayloadForm, readable
from queuecore.errors import UndecodableMessage
from queuecore.messages import Key, QueueMessage
from queuecore.messagetypes import MessageForm

# A longer payload is mended over REST, as a file.
MOST_EDITED_BYTES: Final = 256 * 1024
_BASE64: Final = "base64:"
_FORMS: Final = (PayloadForm.JSON, PayloadForm.TEXT, PayloadForm.BASE64)


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
    form = forms.TypedChoiceField(label="Payload is", coerce=PayloadForm, widget=forms.RadioSelect)
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
    seen = TimeField(widget=forms.HiddenInput)

    def __init__(
        self, base: QueueMessage, *args: Any, message_form: MessageForm | None = None,
        asked: PayloadForm | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """`base` is what the form begins with: what nobody touches stays as it is, to the byte. Its payload is in the
        form that is asked for."""
        super().__init__(*args, **kwargs)
        self._base = base
        self._message_form = message_form
        self._payload = written(base.data, _FORMS, message_form, asked)
        self.initial = {**_parts(base, self._payload), **self.initial}
        form = self.fields["form"]
        assert isinstance(form, forms.TypedChoiceField)  # noqa: S101 (for the type checker)
        form.choices = choices(_FORMS, message_form)
        form.help_text = " ".join(self._payload.notes)

    @property
    def is_decoded(self) -> bool:
        """Whether what it begins with is shown by its message type."""
        return self._payload.form is PayloadForm.PROTOBUF

    def clean_key(self) -> Key:
        text = self.cleaned_data["key"]
        if not text:
            return None
        if text.startswith(_BASE64):
            return decoded_base64(text.removeprefix(_BASE64))
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

    def _data(self, form: PayloadForm, text: str) -> bytes:
        return self._base.data if self._is_untouched(form, text) else typed(form, text, self._message_form)

    def _is_untouched(self, form: PayloadForm, text: str) -> bool:
        try:
            base = self._payload if form is self._payload.form else as_typed(form, self._base.data, self._message_form)
        except UndecodableMessage:
            return False
        return base.text == text

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


def compared(before: QueueMessage, after: QueueMessage, message_form: MessageForm | None = None) -> list[Line]:
    """What would be sent otherwise, with some of what stays around it; empty where nothing would."""
    first, then = ("\n".join(_lines(one, message_form)).splitlines() for one in (before, after))
    return compared_lines(first, then)


def _parts(message: QueueMessage, payload: Written) -> dict[str, str]:
    """A message as the form has it. JSON is indented: that is compared line by line."""
    headers = "\n".join(f"{name}: {_told(value)}" for name, value in sorted(message.headers.items()))
    return {"key": _shown_key(message.key), "headers": headers, "form": payload.form.value, "payload": payload.text}


def _lines(message: QueueMessage, message_form: MessageForm | None) -> list[str]:
    """With the payload's form: the same JSON, stored as it is or by its message type, is not the same message."""
    payload = written(message.data, _FORMS, message_form)
    parts = _parts(message, payload)
    told = f"payload, {name_of(payload.form, message_form)}:"
    headers = parts["headers"].splitlines()
    return [f"key: {parts['key'] or '(none)'}", *headers, "", told, *payload.notes, parts["payload"]]


def _shown_key(key: Key) -> str:
    return f"{_BASE64}{base64.b64encode(key).decode()}" if isinstance(key, bytes) else str(key or "")


def _told(value: bytes) -> str:
    """Text where it would be read as the same bytes again."""
    text = readable(value, is_cut=False)
    if text is None or len(text.splitlines()) > 1 or text != text.strip() or text.startswith(_BASE64):
        return _BASE64 + base64.b64encode(value).decode()
    return text


def _header(text: str) -> bytes:
    return decoded_base64(text.removeprefix(_BASE64)) if text.startswith(_BASE64) else text.encode()
