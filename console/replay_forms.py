"""How a replay is to go about it, as people choose it."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms

from console.fields import NumberField
from queueapi.errors import InvalidInput
from queueapi.replaying import MAX_RATE_PER_S, ReplaySettings

LONGEST_REASON: Final = 2000
_PERCENT: Final = 100


class ReplayForm(forms.Form):
    rate = NumberField(
        label="Letters a second, at most",
        required=False,
        min_value=0.001,
        max_value=MAX_RATE_PER_S,
        help_text="Empty: as many as can be.",
        widget=forms.NumberInput(attrs={"step": "any", "placeholder": "no limit"}),
    )
    ramp = forms.CharField(
        label="First only so many",
        required=False,
        max_length=200,
        help_text="In all, step by step: each waits for its outcome. Empty: all at once.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "1, 10, 100", "inputmode": "numeric"}),
    )
    abort_percent = NumberField(
        label="Stop above % failed again",
        required=False,
        min_value=0.1,
        max_value=_PERCENT,
        help_text="Of those whose outcome is known. Empty: never.",
        widget=forms.NumberInput(attrs={"step": "any", "placeholder": "never"}),
    )
    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        help_text="The ledger keeps it, with your name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Billing answers again"}),
    )

    @classmethod
    def showing(cls, settings: ReplaySettings) -> "ReplayForm":
        return cls(initial=_shown(settings))

    def clean_ramp(self) -> tuple[int, ...]:
        try:
            return tuple(int(step) for step in self.cleaned_data["ramp"].replace(",", " ").split())
        except ValueError as error:
            raise forms.ValidationError("Enter whole numbers, as 1, 10, 100.") from error

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if not self.errors:
            try:
                values["settings"] = _settings(values)
            except InvalidInput as error:
                self.add_error("ramp", f"{error.message[:1].upper()}{error.message[1:]}.")
        return values


def _shown(settings: ReplaySettings) -> dict[str, Any]:
    ratio = settings.abort_ratio
    return {
        "rate": settings.rate_per_s,
        "ramp": ", ".join(map(str, settings.ramp)),
        "abort_percent": None if ratio is None else f"{ratio * _PERCENT:g}",
    }


def _settings(values: Mapping[str, Any]) -> ReplaySettings:
    percent = values["abort_percent"]
    ratio = None if percent is None else percent / _PERCENT
    return ReplaySettings(rate_per_s=values["rate"], ramp=values["ramp"], abort_ratio=ratio)
