"""What lists can be narrowed to."""

from typing import Any, cast
from uuid import UUID

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from console.fields import QueueField, TenantField, TimeField
from queueapi.choices import LagStatus, LetterState, OperationState, QueueState
from queueapi.models import DeadLetter, Operation, Pause, Queue
from queueapi.selectors.dead_letters import letters_for_lists
from queueapi.selectors.lag import queues_judged
from queueapi.selectors.letter_filter import LetterFilter

_PAUSED = ("paused", "Paused")


def search_box(label: str, method: str, placeholder: str) -> django_filters.CharFilter:
    widget = forms.TextInput(attrs={"type": "search", "placeholder": placeholder, "autocomplete": "off"})
    return django_filters.CharFilter(label=label, method=method, widget=widget)


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


class ListFilter(django_filters.FilterSet):
    """What a list can be narrowed to. Where one of these makes no sense nothing is left: all that it does not narrow
    would be taken for what was asked for, and decided on."""

    @property
    def qs(self) -> QuerySet[Any]:
        if self.is_bound and not self.is_valid():
            return cast("QuerySet[Any]", self.queryset.none())
        return cast("QuerySet[Any]", super().qs)


class QueueNameFilter(django_filters.Filter):
    """One queue, by its name or id."""

    field_class = QueueField

    def __init__(self, **options: Any) -> None:
        super().__init__(label="Queue", widget=_name_input("Any queue"), **options)


class TenantNameFilter(django_filters.Filter):
    """One tenant, by its name or id."""

    field_class = TenantField

    def __init__(self, **options: Any) -> None:
        super().__init__(label="Tenant", widget=_name_input("Any tenant"), **options)


class TimeFilter(django_filters.Filter):
    """From a moment on, or up to one."""

    field_class = TimeField


class GroupFilter(django_filters.Filter):
    """One group of letters, by its number. Whether there is one is not looked up: one that is gone has no letters."""

    field_class = forms.IntegerField

    def __init__(self) -> None:
        super().__init__(widget=forms.HiddenInput, min_value=1, max_value=2**63 - 1)


def _name_input(placeholder: str) -> forms.TextInput:
    return forms.TextInput(attrs={"placeholder": placeholder, "autocomplete": "off", "spellcheck": "false"})


class QueueFilter(ListFilter):
    q = search_box("Search", "search", "Name or topic")
    tenant = TenantNameFilter()
    state = django_filters.ChoiceFilter(
        choices=[_PAUSED, *QueueState.choices], method="by_state", empty_label="Any state"
    )
    status = django_filters.ChoiceFilter(choices=LagStatus, method="by_status", widget=forms.HiddenInput)

    class Meta:
        model = Queue
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(name__icontains=value) | Q(topic__icontains=value))

    def by_state(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """Paused: any of it."""
        return rows.filter(pk__in=Pause.objects.values("queue")) if value == _PAUSED[0] else rows.filter(state=value)

    def by_status(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return queues_judged(rows, LagStatus(value))


class LetterListFilter(ListFilter):
    """What the address asks for, as a `LetterFilter`."""

    q = django_filters.CharFilter(
        label="Search",
        widget=forms.TextInput(
            attrs={"type": "search", "placeholder": "Error, topic, key, id…", "autocomplete": "off"}
        ),
    )
    queue = QueueNameFilter()
    tenant = TenantNameFilter()
    since = TimeFilter(label="Failed since (UTC)")
    until = TimeFilter(label="Failed before (UTC)")
    state = django_filters.ChoiceFilter(choices=LetterState, widget=forms.HiddenInput)
    group = GroupFilter()
    error = django_filters.CharFilter(widget=forms.HiddenInput)

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    @property
    def wanted(self) -> LetterFilter:
        """Without what makes no sense: of `is_valid` filters alone it is what somebody asked for."""
        self.form.is_valid()
        given: dict[str, Any] = self.form.cleaned_data
        return LetterFilter(
            queue=getattr(given.get("queue"), "pk", None),
            tenant=getattr(given.get("tenant"), "pk", None),
            state=LetterState(given["state"]) if given.get("state") else None,
            group=given.get("group"),
            fingerprint=given.get("error") or "",
            text=given.get("q") or "",
            since=given.get("since"),
            until=given.get("until"),
        )

    def filter_queryset(self, _rows: QuerySet[Any]) -> QuerySet[Any]:
        """Queues and tenants are read for the page alone: joined, they would have all letters sorted."""
        return letters_for_lists(self.wanted).select_related(None).prefetch_related("queue", "tenant")


class OperationFilter(ListFilter):
    q = search_box("Search", "search", "Summary, kind or who started it")
    state = django_filters.ChoiceFilter(choices=OperationState, widget=forms.HiddenInput)

    class Meta:
        model = Operation
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(summary__icontains=value) | Q(kind__icontains=value) | Q(created_by__username__icontains=value)
        exact = _as_uuid(value)
        return rows.filter(text | Q(pk=exact) if exact else text)
