"""Which days' summaries are to be made anew."""

from typing import Any

from django import forms


class BackfillForm(forms.Form):
    first = forms.DateField(label="First day (UTC)", widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(
        label="Last day (UTC)",
        required=False,
        help_text="Empty: the first one alone.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        values["last"] = values.get("last") or values.get("first")
        return values
