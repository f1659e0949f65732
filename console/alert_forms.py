"""What people type about alerts, their rules and silences, checked."""

from datetime import timedelta
from typing import Any, Final

from django import forms

from console.fields import DurationField, IsolableTenantField, NumberField, QueueField
from console.widgets import LongSelect
from queueapi.actions.alert_rules import CHANGEABLE, CHANNEL_FIELDS, RULE_FIELDS
from queueapi.alerting.metrics import METRICS, SubjectKind
from queueapi.choices import AlertMetric
from queueapi.models import AlertChannel, AlertRule

_LENGTHS: Final = {
    "15 minutes": timedelta(minutes=15),
    "1 hour": timedelta(hours=1),
    "4 hours": timedelta(hours=4),
    "12 hours": timedelta(hours=12),
    "1 day": timedelta(days=1),
    "3 days": timedelta(days=3),
    "7 days": timedelta(days=7),
    "30 days": timedelta(days=30),
}
_KINDS: Final = {
    SubjectKind.QUEUE: "Of queues",
    SubjectKind.REQUESTS: "Of requests and their answers",
    SubjectKind.CLUSTER: "Of the cluster",
    SubjectKind.PIPELINE: "Of the pipeline",
}
LABELS: Final = {
    "threshold": "Fires above",
    "for_s": "For at least (s)",
    "resolve_at": "Resolves at",
    "resolve_for_s": "For at least (s)",
    "request_topic": "One request topic",
    "escalate_after_s": "Escalate after (s)",
    "enabled": "It is on",
}
_HELP: Final = {
    "threshold": "In the metric's unit.",
    "for_s": "What lasts a moment calls nobody.",
    "resolve_at": "No more than the threshold. Empty: the threshold.",
    "resolve_for_s": "Before it is over.",
    "request_topic": "As requests name it.",
    "escalate_after_s": "When nobody has acknowledged it for so long. Empty: it does not.",
}


class AcknowledgementForm(forms.Form):
    note = forms.CharField(
        max_length=500,
        required=False,
        help_text="For whoever looks next.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Restarting the billing service"}),
    )


class SilenceAlertForm(forms.Form):
    lasts = DurationField(_LENGTHS, label="For", initial="1 hour")
    reason = forms.CharField(
        max_length=500,
        help_text="For whoever wonders that it is so quiet.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Billing is being moved until 15:00"}),
    )


class SilenceForm(SilenceAlertForm):
    """Alerts that match all that is named."""

    rule = forms.ModelChoiceField(AlertRule.objects.all(), required=False, empty_label="Any rule", widget=LongSelect)
    tenant = IsolableTenantField(help_text="Its name or id, for its own queues. Empty: any.")
    queue = QueueField(help_text="Its name or id. Empty: any.")
    subject_key = forms.CharField(max_length=300, required=False, widget=forms.HiddenInput)

    @property
    def matched(self) -> dict[str, Any]:
        """As `create_silence` wants it."""
        return {name: self.cleaned_data[name] for name in ("rule", "tenant", "queue", "subject_key")}


def _channels(label: str) -> "forms.ModelMultipleChoiceField[AlertChannel]":
    return forms.ModelMultipleChoiceField(
        AlertChannel.objects.all(), label=label, required=False, widget=forms.CheckboxSelectMultiple
    )


class RuleChangeForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's own takes none
    """What it is about stays."""

    channels = _channels("Who is told when it fires")
    escalation_channels = _channels("Who is told when it escalates")

    class Meta:
        model = AlertRule
        fields: tuple[str, ...] = (*CHANGEABLE, *CHANNEL_FIELDS)
        labels = LABELS
        help_texts = _HELP
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off"})}
        field_classes = {"threshold": NumberField, "resolve_at": NumberField}

    def limits(self) -> list[forms.BoundField]:
        return [self[name] for name in ("threshold", "for_s", "resolve_at", "resolve_for_s")]


def _metrics() -> list[tuple[str, list[tuple[str, str]]]]:
    """By what they are of, each with its unit."""
    return [(told, [_choice(each) for each in AlertMetric if _is_of(each, kind)]) for kind, told in _KINDS.items()]


def _is_of(metric: AlertMetric, kind: SubjectKind) -> bool:
    return METRICS[metric].kind == kind


def _choice(metric: AlertMetric) -> tuple[str, str]:
    return metric.value, f"{metric.label} ({METRICS[metric].unit})"


class RuleForm(RuleChangeForm):
    """With neither tenant nor queue nor topic it is for everything that its metric is of."""

    metric = forms.ChoiceField(choices=_metrics, label="What it looks at")
    tenant = IsolableTenantField(label="One tenant", help_text="Its name or id, for its own queues.")
    queue = QueueField(label="One queue", help_text="Its name or id.")

    class Meta(RuleChangeForm.Meta):
        fields = (*RULE_FIELDS, *CHANNEL_FIELDS)

    def scope(self) -> list[forms.BoundField]:
        return [self[name] for name in ("tenant", "queue", "request_topic")]
