"""All that is configured about a queue, as people type it."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from console.changes import of_field
from console.fields import NumberField, TenantField
from console.measured_fields import BytesField, MillisecondsField
from console.queue_field_texts import HELP, LABELS
from queueapi.actions.queue_checks import CHANGEABLE
from queueapi.handler_options import shown_options
from queueapi.models import Queue
from queuecore.consuming.handlers import handler_names
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType

MADE_WITH: Final = ("tenant", "name", "topic", "service_type", "partitions")
# How the form is divided; a field is in one of them.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "handling": ("handler", "handler_options", "delivery", "label", "state_topic"),
    "consuming": ("consumer_per_partition", "concurrency", "poll_interval_ms", "pack_processing_timeout_ms"),
    "submit": ("submit_strategy", "batch_size"),
    "processing": ("processing_strategy", "retries", "failure_percentage", "retry_pause_ms", "max_retry_pause_ms"),
    "letters": ("dlq_enabled", "dlq_topic", "dlq_max_count", "dlq_max_ratio", "dlq_window_s", "dlq_on_limit"),
    "keeping": (
        "retention_ms", "retention_bytes", "max_backlog", "segment_bytes", "replication_factor", "custom_properties"
    ),
}  # fmt: skip

_TYPED: Final = {"autocomplete": "off", "spellcheck": "false"}
_MONO: Final = {**_TYPED, "class": "mono"}


class JsonObjectField(forms.JSONField):
    """An object; nothing is an empty one."""

    def clean(self, value: Any) -> dict[str, Any]:
        given = super().clean(value)
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise ValidationError('This is no JSON object; write it as {"name": "value"}, {} for none.')
        return given


class PropertiesField(forms.CharField):
    """`name = value`, one in each line."""

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name} = {each}" for name, each in value.items()) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in filter(None, map(str.strip, super().clean(value).splitlines())):
            name, sign, given = (part.strip() for part in line.partition("="))
            if not name or not sign:
                raise ValidationError(f'"{line}" cannot be read; write it as "compression.type = zstd"')
            if name in found:
                raise ValidationError(f"{name} is there twice; leave one of them out")
            found[name] = given
        return found


class QueueForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's own takes none
    """What may change. Give it a queue from `shown`: what is secret is not to leave the server."""

    handler = forms.ChoiceField(help_text=HELP["handler"])
    handler_options = JsonObjectField(
        label=LABELS["handler_options"],
        required=False,
        help_text=HELP["handler_options"],
        widget=forms.Textarea(attrs={**_MONO, "rows": 4}),
    )
    submit_strategy = forms.ChoiceField(
        label=LABELS["submit_strategy"],
        choices=[(one.value, one.value) for one in SubmitStrategyType],
        widget=forms.RadioSelect,
    )
    processing_strategy = forms.ChoiceField(
        label=LABELS["processing_strategy"],
        choices=[(one.value, one.value) for one in ProcessingStrategyType],
        widget=forms.RadioSelect,
    )
    poll_interval_ms = MillisecondsField(label=LABELS["poll_interval_ms"], help_text=HELP["poll_interval_ms"])
    pack_processing_timeout_ms = MillisecondsField(
        label=LABELS["pack_processing_timeout_ms"], help_text=HELP["pack_processing_timeout_ms"]
    )
    retry_pause_ms = MillisecondsField(label=LABELS["retry_pause_ms"], help_text=HELP["retry_pause_ms"])
    max_retry_pause_ms = MillisecondsField(label=LABELS["max_retry_pause_ms"], help_text=HELP["max_retry_pause_ms"])
    retention_ms = MillisecondsField("for ever", label=LABELS["retention_ms"], help_text=HELP["retention_ms"])
    retention_bytes = BytesField("without limit", label=LABELS["retention_bytes"], help_text=HELP["retention_bytes"])
    segment_bytes = BytesField(label=LABELS["segment_bytes"], help_text=HELP["segment_bytes"])
    custom_properties = PropertiesField(
        label=LABELS["custom_properties"],
        required=False,
        help_text=HELP["custom_properties"],
        widget=forms.Textarea(attrs={**_MONO, "rows": 3, "placeholder": "compression.type = zstd"}),
    )

    class Meta:
        model = Queue
        fields: tuple[str, ...] = CHANGEABLE
        labels = LABELS
        help_texts = HELP
        widgets = {name: forms.TextInput(attrs=_MONO) for name in ("label", "state_topic", "dlq_topic")}
        field_classes = {"failure_percentage": NumberField, "dlq_max_ratio": NumberField}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        handler = self.fields["handler"]
        assert isinstance(handler, forms.ChoiceField)  # noqa: S101 (for the type checker)
        # One that nobody has registered here may still be the queue's.
        names = {*handler_names(), self.instance.handler}
        handler.choices = [(name, name or "Choose one\N{HORIZONTAL ELLIPSIS}") for name in sorted(names)]

    def _post_clean(self) -> None:
        """What the model says of one field is told there."""
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, which its stubs leave out
        for text in self.errors.pop(NON_FIELD_ERRORS, []):
            told = of_field(str(text))
            name = next((each for each in told if each in self.fields), None)
            self.add_error(name, told[name] if name else str(text))

    def group(self, name: str) -> list[forms.BoundField]:
        return [self[each] for each in GROUPS[name]]

    def typed(self, name: str) -> str:
        """As it stands in the form, also where that cannot be."""
        return str(self[name].value() or "")


class NewQueueForm(QueueForm):
    """With what never changes after this. What is empty is as the handler and the tenant's profile say."""

    tenant = TenantField(required=True, help_text=HELP["tenant"])

    class Meta(QueueForm.Meta):
        fields = (*MADE_WITH, *CHANGEABLE)
        widgets = {**QueueForm.Meta.widgets, **{name: forms.TextInput(attrs=_MONO) for name in ("name", "topic")}}

    usual = ("pack_processing_timeout_ms", "retention_ms")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, instance=Queue(), **kwargs)
        self.fields["tenant"].widget.attrs["list"] = "tenant-names"
        for name in self.usual:
            self.fields[name].required = False
            self.initial[name] = ""
        self.fields["pack_processing_timeout_ms"].help_text += " Empty: as long as the handler says."
        self.fields["retention_ms"].help_text += " Empty: as the tenant's profile says, 7 d otherwise."

    def chosen(self) -> dict[str, Any]:
        """As `create_queue` wants it, without the tenant."""
        given = {name: value for name, value in self.cleaned_data.items() if name != "tenant"}
        return {name: value for name, value in given.items() if name not in self.usual or value is not None}


def shown(queue: Queue) -> Queue:
    """A copy of it, as people may see it."""
    copy = Queue.objects.select_related("tenant").get(pk=queue.pk)
    copy.handler_options = shown_options(copy)
    return copy
