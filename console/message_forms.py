"""Which messages of a queue are to be shown, as people ask."""

from datetime import datetime
from typing import Any, Final

from django import forms
from rest_framework.exceptions import ValidationError as BadCursor

from console.fields import TenantField, TimeField
from queueapi.models import Queue
from queueapi.rest.v1.message_serializers import places_in
from queueapi.selectors.message_scans import MAX_TEXT, MessageQuery
from queueapi.selectors.message_shapes import PayloadForm

_FAR: Final = 2**63 - 2
_LIMITS: Final = (20, 50, 100)
_FORMS: Final = {
    PayloadForm.AUTO: "As they are",
    PayloadForm.PROTOBUF: "Message type",
    PayloadForm.JSON: "JSON",
    PayloadForm.TEXT: "Text",
    PayloadForm.HEX: "Hex",
    PayloadForm.BASE64: "Base64",
}


class MessageForm(forms.Form):
    text = forms.CharField(
        required=False,
        max_length=MAX_TEXT,
        widget=forms.TextInput(
            attrs={"type": "search", "placeholder": "In key, headers, payload", "autocomplete": "off"}
        ),
    )
    tenant = TenantField(
        widget=forms.TextInput(attrs={"placeholder": "Any tenant", "autocomplete": "off", "spellcheck": "false"})
    )
    partition = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    offset = forms.IntegerField(
        required=False, min_value=0, max_value=_FAR, widget=forms.NumberInput(attrs={"placeholder": "From here"})
    )
    entity = forms.UUIDField(
        label="Entity (key)",
        required=False,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "UUID", "autocomplete": "off", "class": "mono"}),
    )
    since = TimeField(label="Stored since (UTC)")
    until = TimeField(label="Stored before (UTC)")
    order = forms.ChoiceField(required=False, choices=[("", "Newest first"), ("oldest", "Oldest first")])
    shown = forms.ChoiceField(
        label="Payloads",
        required=False,
        choices=[("" if form is PayloadForm.AUTO else form.value, name) for form, name in _FORMS.items()],
    )
    limit = forms.TypedChoiceField(
        label="Up to",
        required=False,
        coerce=int,
        empty_value=None,
        choices=[(one, f"{one} messages") for one in _LIMITS],
    )
    cursor = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, queue: Queue, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        partition = self.fields["partition"]
        assert isinstance(partition, forms.TypedChoiceField)  # noqa: S101 (for the type checker)
        partition.choices = [("", "All"), *((number, str(number)) for number in queue.partition_numbers)]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("offset") is not None and values.get("partition") is None:
            self.add_error("partition", "An offset is of one partition: name it as well.")
        try:
            values["places"] = places_in(values["cursor"]) if values.get("cursor") else None
        except BadCursor:
            self.add_error(None, "Where to go on could not be read: begin anew.")
        return values

    @property
    def form(self) -> PayloadForm:
        return PayloadForm(self.cleaned_data["shown"] or PayloadForm.AUTO)

    @property
    def query(self) -> MessageQuery:
        asked = self.cleaned_data
        return MessageQuery(
            limit=asked["limit"] or _LIMITS[0],
            newest_first=asked["order"] != "oldest",
            partition=asked["partition"],
            offset=asked["offset"],
            from_ms=_millis(asked["since"]),
            to_ms=_millis(asked["until"]),
            entity=asked["entity"],
            tenant=getattr(asked["tenant"], "pk", None),
            text=asked["text"],
            places=asked["places"],
        )


def _millis(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)
