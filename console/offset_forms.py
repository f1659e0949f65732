"""Where a group is to go on from, as people choose it."""

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.utils.functional import cached_property

from console.fields import TimeField
from queuecore.clock import SYSTEM_CLOCK
from queuecore.groups.resetting import AtOffset, AtTime, Earliest, Latest, Shifted, Target

_FAR: Final = 2**63 - 2
_CHOICES: Final = [
    ("earliest", "the oldest message there is"),
    ("latest", "what comes next: everything that waits is skipped"),
    ("time", "the first message stored at a time or later"),
    ("ago", "the messages of the last minutes"),
    ("offset", "an offset"),
    ("shift", "so many after what is committed, or before it"),
]
_NEEDED: Final = {"time": "time", "ago": "minutes", "offset": "offset", "shift": "count"}


class ResetForm(forms.Form):
    to = forms.ChoiceField(label="Go on from", choices=_CHOICES)
    time = TimeField(label="Time (UTC)")
    minutes = forms.IntegerField(label="Minutes", required=False, min_value=1, max_value=60 * 24 * 365)
    # When minutes were counted back from: what was planned is done however long somebody looks at the plan.
    asked_at_ms = forms.IntegerField(required=False, min_value=0, max_value=_FAR, widget=forms.HiddenInput)
    offset = forms.IntegerField(label="Offset", required=False, min_value=0, max_value=_FAR)
    count = forms.IntegerField(
        label="Messages", required=False, min_value=-_FAR, max_value=_FAR, help_text="Below 0: before it."
    )

    def clean(self) -> dict[str, Any]:
        needed = _NEEDED.get(self.cleaned_data.get("to", ""))
        if needed and self.cleaned_data.get(needed) is None and needed not in self.errors:
            self.add_error(needed, "Enter it, or choose another place to go on from.")
        return self.cleaned_data

    @cached_property
    def counted_from_ms(self) -> int:
        asked: int | None = self.cleaned_data.get("asked_at_ms")
        return SYSTEM_CLOCK.now_ms() if asked is None else asked

    @property
    def target(self) -> Target:
        asked = self.cleaned_data
        match asked["to"]:
            case "earliest":
                return Earliest()
            case "latest":
                return Latest()
            case "offset":
                return AtOffset(asked["offset"])
            case "shift":
                return Shifted(asked["count"])
            case "ago":
                return AtTime(self.counted_from_ms - timedelta(minutes=asked["minutes"]) // timedelta(milliseconds=1))
            case _:
                return AtTime(round(asked["time"].timestamp() * 1000))
