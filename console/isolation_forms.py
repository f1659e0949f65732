"""What people type about queues of a tenant's own, checked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django import forms
from django.http import QueryDict

from console.fields import NumberField
from console.strategies import Picture, chosen_picture
from console.templatetags.console import milliseconds_long
from queueapi.models import Queue, Tenant
from queueapi.models.tenant_profile import TenantProfile
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.providers.base import FOR_EVER
from queuecore.submit.strategies import SubmitStrategyType

LONGEST_REASON: Final = 500
LONGEST_COMMENT: Final = 2000
_HOUR_MS: Final = 3_600_000
_MOST: Final = 1_000_000_000
# What is offered here; all else that REST takes is kept as it was asked for.
_OFFERED: Final = ("partitions", "retention_ms", "submit_strategy", "processing_strategy", "retries", "max_backlog")

Asked = Mapping[str, Any]


class AskedQueueForm(forms.Form):
    """One of the shared queues: whether the tenant is to have it of its own, and what is to be other then. What is left
    empty is as in the shared queue."""

    chosen = forms.BooleanField(required=False)
    partitions = forms.IntegerField(required=False, min_value=1, max_value=_MOST)
    retention_h = NumberField(label="Messages kept for (hours)", required=False, min_value=0.001, max_value=_MOST)
    submit_strategy = forms.ChoiceField(required=False)
    processing_strategy = forms.ChoiceField(required=False)
    retries = forms.IntegerField(required=False, min_value=0, max_value=1000)
    max_backlog = forms.IntegerField(label="Most messages waiting", required=False, min_value=0, max_value=_MOST)

    def __init__(self, shared: Queue, profile: TenantProfile, asked: Asked | None, data: QueryDict | None) -> None:
        self.shared, self._kept = shared, dict(asked or {})
        initial = {"chosen": asked is not None, **{name: self._kept.get(name) for name in _OFFERED}}
        kept_ms = self._kept.get("retention_ms", FOR_EVER)
        initial["retention_h"] = None if kept_ms == FOR_EVER else kept_ms / _HOUR_MS
        super().__init__(data, prefix=f"queue-{shared.pk}", initial=initial, use_required_attribute=False)
        self.fields["chosen"].label = shared.name
        _offer(self.fields["submit_strategy"], shared.submit_strategy, SubmitStrategyType, profile.submit_strategies)
        _offer(
            self.fields["processing_strategy"],
            shared.processing_strategy,
            ProcessingStrategyType,
            profile.processing_strategies,
        )
        for name, value in _usual(shared).items():
            self.fields[name].widget.attrs |= {"placeholder": value, "autocomplete": "off"}

    def options(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name != "chosen"]

    @property
    def is_chosen(self) -> bool:
        return bool(self["chosen"].value())

    @property
    def picture(self) -> Picture | None:
        """Of its strategies; what is left empty is as in the shared queue."""
        chosen = (
            self[name].value() or getattr(self.shared, name) for name in ("submit_strategy", "processing_strategy")
        )
        return chosen_picture(*chosen)

    @property
    def asked(self) -> dict[str, Any]:
        """As `request_isolation` wants it."""
        given = self.cleaned_data
        hours = given["retention_h"]
        typed = given | {"retention_ms": None if hours is None else round(hours * _HOUR_MS)}
        kept = {name: value for name, value in self._kept.items() if name not in ("name", *_OFFERED)}
        # For ever has no number of hours, and is not taken back unasked.
        if self._kept.get("retention_ms") == FOR_EVER and hours is None:
            kept["retention_ms"] = FOR_EVER
        entered = {name: typed[name] for name in _OFFERED if typed[name] not in (None, "")}
        return {"name": self.shared.name, **kept, **entered}


class IsolationForm(forms.Form):
    """All shared queues that the tenant could have of its own, and why it asks."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        help_text="For whoever decides.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "placeholder": "Bursts of 5,000 messages a second in May"}
        ),
    )

    def __init__(
        self,
        tenant: Tenant,
        shared: Iterable[Queue],
        data: QueryDict | None = None,
        *,
        asked: Sequence[Asked] = (),
        reason: str = "",
    ) -> None:
        super().__init__(data, initial={"reason": reason})
        before = {one["name"].lower(): one for one in asked}
        self.rows = [AskedQueueForm(queue, tenant.profile, before.get(queue.name.lower()), data) for queue in shared]

    def is_valid(self) -> bool:
        """Of queues that are not chosen it does not matter what was typed."""
        is_right = self.queues_are_valid()
        if not (chosen := self._chosen()):
            self.add_error(None, "Choose at least one queue.")
        return super().is_valid() and is_right and bool(chosen)

    def queues_are_valid(self) -> bool:
        """Each is looked at, so that each says what is wrong."""
        wrong = [row for row in self._chosen() if not row.is_valid()]
        return not wrong

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [row.asked for row in self._chosen()]

    def _chosen(self) -> list[AskedQueueForm]:
        return [row for row in self.rows if row.is_chosen]


class ApprovalForm(forms.Form):
    version = forms.IntegerField(widget=forms.HiddenInput)
    comment = forms.CharField(
        label="Comment, if any",
        max_length=LONGEST_REASON,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class RefusalForm(forms.Form):
    comment = forms.CharField(
        label="Why not",
        max_length=LONGEST_REASON,
        help_text="For whoever asked.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "placeholder": "Four partitions are enough for that rate"}
        ),
    )


class CommentForm(forms.Form):
    text = forms.CharField(
        label="Comment",
        max_length=LONGEST_COMMENT,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "Whoever sees the request reads this"}),
    )


class ReturnForm(forms.Form):
    discard_letters = forms.BooleanField(
        label="Discard dead letters of its own queues that nobody has decided on", required=False
    )


def _offer(field: forms.Field, usual: str, kinds: Any, allowed: Sequence[str]) -> None:
    """Those that the profile allows."""
    assert isinstance(field, forms.ChoiceField)  # noqa: S101 (for the type checker)
    offered = [kind.value for kind in kinds if not allowed or kind.value in allowed]
    field.choices = [("", f"As shared: {usual}"), *((kind, kind) for kind in offered)]


def _usual(shared: Queue) -> dict[str, str]:
    """What holds where nothing is entered."""
    kept = "for ever" if shared.retention_ms == FOR_EVER else milliseconds_long(shared.retention_ms)
    return {
        "partitions": f"{shared.partitions:,}",
        "retention_h": kept,
        "retries": f"{shared.retries:,}",
        "max_backlog": f"{shared.max_backlog:,}" if shared.max_backlog else "no limit",
    }
