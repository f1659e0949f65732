"""A rebalance as people ask about it."""

from collections.abc import Collection
from typing import Any, Final

from django import forms

from console.fields import NumberField, QueueField
from queueapi.actions.rebalances import LONGEST_REASON
from queuecore.cluster.resizing import MAX_PARTITIONS
from queuecore.cluster.services import MAX_WEIGHT, ServiceInfo
from queuecore.errors import ConfigurationError, InvalidName

_MOST_JOINING: Final = 100


class RebalancePlanForm(forms.Form):
    """Who leaves, who joins, how many partitions a queue has; all of it may be left out."""

    leaving = forms.MultipleChoiceField(
        label="Services that leave", required=False, widget=forms.CheckboxSelectMultiple
    )
    joining = forms.IntegerField(
        label="Services that join",
        required=False,
        min_value=0,
        max_value=_MOST_JOINING,
        widget=forms.NumberInput(attrs={"placeholder": "0"}),
    )
    weight = NumberField(
        label="Each with the weight",
        required=False,
        min_value=0.001,
        max_value=MAX_WEIGHT,
        widget=forms.NumberInput(attrs={"placeholder": "1", "step": "any"}),
    )
    joining_ids = forms.CharField(
        label="Or by their ids",
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "host-3, host-4", "class": "mono"}),
    )
    queue = QueueField(label="A queue with other partitions", help_text="Its name or id.")
    partitions = forms.IntegerField(
        label="Its number of partitions", required=False, min_value=1, max_value=MAX_PARTITIONS
    )
    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        help_text="Whoever sees partitions move reads this.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "machine-2 gets a new disk"}),
    )

    def __init__(self, service_ids: Collection[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken = set(service_ids)
        leaving = self.fields["leaving"]
        assert isinstance(leaving, forms.MultipleChoiceField)  # noqa: S101 (for the type checker)
        leaving.choices = [(each, each) for each in sorted(service_ids)]

    def clean(self) -> dict[str, Any]:
        """With `infos` of the services that join, and `counts` as `plan_rebalance` wants them."""
        values = self.cleaned_data
        values["infos"] = self._infos()
        queue, count = values.get("queue"), values.get("partitions")
        if (queue is None) != (count is None) and not self.errors:
            missing = "partitions" if count is None else "queue"
            self.add_error(missing, "Choose both, a queue and how many partitions it would have.")
        values["counts"] = {queue: count} if queue is not None and count is not None else {}
        return values

    @property
    def asked(self) -> dict[str, Any]:
        """As `plan_rebalance` wants it. What makes no sense is left out, and `errors` say so."""
        self.is_valid()
        values: dict[str, Any] = getattr(self, "cleaned_data", {})
        return {
            "leaving": values.get("leaving", []),
            "joining": values.get("infos", []),
            "partitions": values.get("counts", {}),
        }

    def _infos(self) -> list[ServiceInfo]:
        weight = self.cleaned_data.get("weight")
        try:
            return [ServiceInfo(each, weight=1.0 if weight is None else weight) for each in self._joining_ids()]
        except (ConfigurationError, InvalidName) as error:
            self.add_error("joining_ids", f"{error.message[:1].upper()}{error.message[1:]}.")
            return []

    def _joining_ids(self) -> list[str]:
        typed = self.cleaned_data.get("joining_ids") or ""
        if named := [each.strip() for each in typed.split(",") if each.strip()]:
            return list(dict.fromkeys(named))[:_MOST_JOINING]
        free = (name for number in range(1, 10**6) if (name := f"new-{number}") not in self._taken)
        return [next(free) for _ in range(self.cleaned_data.get("joining") or 0)]
