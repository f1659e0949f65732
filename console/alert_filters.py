"""What lists of alerts and what belongs to them can be narrowed to."""

from typing import Any, Final

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone

from console.filters import ListFilter, TenantNameFilter, search_box
from queueapi.choices import AlertMetric, AlertSeverity, AlertState, ChannelKind
from queueapi.models import Alert, AlertChannel, AlertRule, Queue, Silence

# In any state; without one, those that are not over.
EVERY: Final = "all"

_ON: Final = [("", "On and off"), ("true", "On only"), ("false", "Off only")]
_HELD: Final = [("", "All"), ("true", "Those that hold"), ("false", "Those that ended")]


def _hidden(rows: QuerySet[Any]) -> django_filters.ModelChoiceFilter:
    """What links of other pages narrow by."""
    return django_filters.ModelChoiceFilter(queryset=rows, widget=forms.HiddenInput)


class AlertFilter(ListFilter):
    q = search_box("Search", "search", "Queue, rule or reason")
    severity = django_filters.ChoiceFilter(choices=AlertSeverity, empty_label="Any severity")
    tenant = TenantNameFilter()
    state = django_filters.ChoiceFilter(
        choices=[*AlertState.choices, (EVERY, "All")], method="by_state", widget=forms.HiddenInput
    )
    queue = _hidden(Queue.objects.all())
    rule = _hidden(AlertRule.objects.all())

    class Meta:
        model = Alert
        fields: list[str] = []

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().filter_queryset(queryset)
        return rows if self.form.cleaned_data.get("state") else rows.exclude(state=AlertState.RESOLVED)

    def by_state(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows if value == EVERY else rows.filter(state=value)

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(subject_name__icontains=value) | Q(rule_name__icontains=value) | Q(reason__icontains=value)
        return rows.filter(text)


class RuleFilter(ListFilter):
    q = search_box("Search", "search", "Name or description")
    metric = django_filters.ChoiceFilter(choices=AlertMetric, empty_label="Any metric")
    severity = django_filters.ChoiceFilter(choices=AlertSeverity, empty_label="Any severity")
    tenant = TenantNameFilter()
    enabled = django_filters.BooleanFilter(label="Show", widget=forms.Select(choices=_ON))
    queue = _hidden(Queue.objects.all())

    class Meta:
        model = AlertRule
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(name__icontains=value) | Q(description__icontains=value))


class ChannelFilter(ListFilter):
    q = search_box("Search", "search", "Name")
    kind = django_filters.ChoiceFilter(choices=ChannelKind, empty_label="Any kind")

    class Meta:
        model = AlertChannel
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(name__icontains=value)


class SilenceFilter(ListFilter):
    q = search_box("Search", "search", "Reason, or who silenced it")
    active = django_filters.BooleanFilter(label="Show", method="by_active", widget=forms.Select(choices=_HELD))
    tenant = TenantNameFilter()

    class Meta:
        model = Silence
        fields: list[str] = []

    def by_active(self, rows: QuerySet[Any], _name: str, value: bool) -> QuerySet[Any]:
        now = timezone.now()
        return rows.filter(until__gt=now) if value else rows.filter(until__lte=now)

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(reason__icontains=value) | Q(created_by__icontains=value))
