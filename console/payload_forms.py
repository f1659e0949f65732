"""A payload as people type it: which forms it can have, how it is put into one, and which bytes they meant."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from django.core.exceptions import ValidationError

from console.payloads import MAX_TEXT_BYTES, indented_text, unnamed, why_undecoded
from queueapi.actions.messages import MAX_PAYLOAD_BYTES
from queueapi.selectors.message_shapes import PayloadForm, readable
from queueapi.selectors.payload_values import decode_payload, indented
from queuecore.errors import InvalidMessage, UndecodableMessage
from queuecore.messagetypes import MessageForm

# However they are encoded on their way, a request takes them.
_MOST_TYPED: Final = 512 * 1024
_NAMES: Final = {PayloadForm.JSON: "JSON", PayloadForm.TEXT: "Text", PayloadForm.BASE64: "Base64"}


@dataclass(frozen=True, slots=True)
class Written:
    """`notes` say in sentences why it is not as its message type has it, or what that leaves out."""

    form: PayloadForm
    text: str
    notes: tuple[str, ...] = ()


def choices(forms: Iterable[PayloadForm], message_form: MessageForm | None) -> list[tuple[str, str]]:
    """The message type first, where there is one: it is what a handler expects."""
    typed = [(PayloadForm.PROTOBUF.value, name_of(PayloadForm.PROTOBUF, message_form))] if message_form else []
    return [*typed, *((form.value, _NAMES[form]) for form in forms)]


def name_of(form: PayloadForm, message_form: MessageForm | None) -> str:
    return message_form.name if form is PayloadForm.PROTOBUF and message_form else _NAMES[form]


def written(
    data: bytes, forms: Iterable[PayloadForm], message_form: MessageForm | None, asked: PayloadForm | None = None
) -> Written:
    """In the form that is asked for, else by the message type, else in the first of these that will do."""
    notes: tuple[str, ...] = ()
    for form in filter(None, (asked, PayloadForm.PROTOBUF, *forms)):
        try:
            found = as_typed(form, data, message_form)
        except UndecodableMessage as error:
            if form is PayloadForm.PROTOBUF and message_form is not None:
                notes = (why_undecoded(message_form, error),)
        else:
            return replace(found, notes=(*notes, *found.notes))
    return as_typed(PayloadForm.BASE64, data, message_form)


def as_typed(form: PayloadForm, data: bytes, message_form: MessageForm | None) -> Written:
    """As a browser sends it back: with no other line ends. UndecodableMessage where it cannot be typed so."""
    if form is PayloadForm.PROTOBUF:
        return _as_type(data, message_form)
    return Written(form, base64.encodebytes(data).decode() if form is PayloadForm.BASE64 else _as_text(form, data))


def typed(form: PayloadForm, text: str, message_form: MessageForm | None) -> bytes:
    """The payload that was meant. ValidationError says what is wrong with what was typed."""
    data = _typed(form, text, message_form)
    if len(data) > MAX_PAYLOAD_BYTES:
        raise ValidationError(f"The payload has {len(data):,} bytes; {MAX_PAYLOAD_BYTES:,} is the most.")
    return data


def decoded_base64(text: str) -> bytes:
    """ValidationError."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValidationError(f"This is not base64: {error}.") from error


def _as_type(data: bytes, message_form: MessageForm | None) -> Written:
    if message_form is None:
        raise UndecodableMessage("nobody said which message the queue carries")
    decoded = decode_payload(message_form, data, MAX_TEXT_BYTES)
    text, is_whole = indented(decoded.value, _MOST_TYPED)
    if not is_whole:
        raise UndecodableMessage(f"its JSON has more than {_MOST_TYPED:,} characters")
    return Written(PayloadForm.PROTOBUF, text, unnamed(message_form, decoded))


def _as_text(form: PayloadForm, data: bytes) -> str:
    text = readable(data, is_cut=False)
    if text is None or "\r" in text:
        raise UndecodableMessage("the payload is no text")
    if form is PayloadForm.TEXT:
        return text
    if (pretty := indented_text(data, _MOST_TYPED)) is None:
        raise UndecodableMessage("the payload is no JSON")
    return pretty


def _typed(form: PayloadForm, text: str, message_form: MessageForm | None) -> bytes:
    if form is PayloadForm.BASE64:
        return decoded_base64("".join(text.split()))
    if form is PayloadForm.PROTOBUF and message_form is not None:
        return _of_type(message_form, _json(text, "send it in another form"))
    if form is not PayloadForm.TEXT:
        _json(text, "send it as text")
    return text.encode()


def _of_type(message_form: MessageForm, value: Any) -> bytes:
    try:
        return message_form.from_json(value)
    except InvalidMessage as error:
        raise ValidationError(f"{error.message[:1].upper()}{error.message[1:]}.") from error


def _json(text: str, otherwise: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValidationError(f"This is not JSON: {error}. Mend it, or {otherwise}.") from error
