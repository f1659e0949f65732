"""What people type about tenants and their profiles, checked."""

from typing import Any, Final

from django import forms

from console.measured_fields import BytesField, MeasuredField, MillisecondsField
from console.strategies import Picture, processing_pictures, submit_pictures
from queueapi.actions.tenant_profiles import PROFILE_FIELDS
from queueapi.actions.tenant_states import LONGEST_REASON
from queueapi.actions.tenants import TENANT_FIELDS
from queueapi.models import Tenant, TenantProfile
from queueapi.quotas import QUOTAS
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType

LABELS: Final = {
    "messages_per_s": "Messages per second",
    "bytes_per_s": "Bytes per second",
    "burst_s": "Burst (seconds)",
    "partitions": "Partitions in all",
    "stored_bytes": "Stored bytes",
    "max_queues": "Most queues",
    "max_partitions_per_queue": "Most partitions of a queue",
    "min_retention_ms": "Shortest retention",
    "max_retention_ms": "Longest retention",
    "approves_isolation": "Approve isolation requests automatically",
    "label": "Label of services",
}
_HELP: Final = {
    "messages_per_s": "Published through each process.",
    "bytes_per_s": "Of payloads, published through each process. As 5 MiB.",
    "burst_s": "After a quiet time, so many seconds' worth may come at once.",
    "partitions": "Of all own queues of a tenant together.",
    "stored_bytes": "Of the messages in a tenant's own queues. As 10 GiB.",
    "max_retention_ms": "As 7 d.",
    "label": "What a service must have to consume own queues of its tenants.",
}
# What holds where a tenant has no quota of its own.
_ELSE: Final = " Empty: the profile's."


def _measured(field: type[MeasuredField], name: str, more: str = "") -> MeasuredField:
    return field(label=LABELS[name], help_text=f"{_HELP.get(name, '')}{more}", required=False)


class TenantForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's own takes none
    """Where a quota is empty, the profile's holds."""

    bytes_per_s = _measured(BytesField, "bytes_per_s", _ELSE)
    stored_bytes = _measured(BytesField, "stored_bytes", _ELSE)

    class Meta:
        model = Tenant
        fields = TENANT_FIELDS
        labels = LABELS
        help_texts = {name: f"{_HELP[name]}{_ELSE}" for name in QUOTAS}
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off"})}

    def quotas(self) -> list[forms.BoundField]:
        return [self[name] for name in QUOTAS]


def _strategies(label: str, kinds: Any) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label,
        choices=[(kind.value, kind.value) for kind in kinds],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: all.",
    )


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # as above
    """Where a limit is empty, there is none."""

    bytes_per_s = _measured(BytesField, "bytes_per_s")
    stored_bytes = _measured(BytesField, "stored_bytes")
    min_retention_ms = _measured(MillisecondsField, "min_retention_ms")
    max_retention_ms = _measured(MillisecondsField, "max_retention_ms")
    submit_strategies = _strategies("Submit strategies", SubmitStrategyType)
    processing_strategies = _strategies("Processing strategies", ProcessingStrategyType)

    class Meta:
        model = TenantProfile
        fields = PROFILE_FIELDS
        labels = LABELS
        help_texts = _HELP
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off"})}

    def quotas(self) -> list[forms.BoundField]:
        return [self[name] for name in QUOTAS]

    def submit_pictures(self) -> list[Picture]:
        """What each does, where what fails is given up."""
        return submit_pictures(None, ProcessingStrategyType.SKIP_ALL_FAILURES)

    def processing_pictures(self) -> list[Picture]:
        return processing_pictures(SubmitStrategyType.BURST, None)

    def limits(self) -> list[forms.BoundField]:
        names = ("max_queues", "max_partitions_per_queue", "min_retention_ms", "max_retention_ms", "label")
        return [self[name] for name in names]


class SuspensionForm(forms.Form):
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        help_text="Whoever is refused reads this.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Invoice 4711 is unpaid"}),
    )
