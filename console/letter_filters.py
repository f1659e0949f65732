"""What lists of groups and of the ledger can be narrowed to."""

from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from console.filters import ListFilter, QueueNameFilter, TimeFilter, search_box
from queueapi.choices import LedgerAction
from queueapi.models import DeadLetterGroup, LedgerEntry

_WAITING = [("open", "With open letters"), ("noted", "With a note")]


class GroupFilter(ListFilter):
    q = search_box("Search", "search", "Error, or fingerprint")
    queue = QueueNameFilter()
    show = django_filters.ChoiceFilter(label="Show", choices=_WAITING, method="by_show", empty_label="All groups")

    class Meta:
        model = DeadLetterGroup
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(exception_class__icontains=value) | Q(exception_message__icontains=value)
        return rows.filter(text | Q(fingerprint=value))

    def by_show(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(open_letters__gt=0) if value == "open" else rows.exclude(note="")


class LedgerFilter(ListFilter):
    who = search_box("Who", "by_who", "User name")
    action = django_filters.ChoiceFilter(choices=LedgerAction, empty_label="Anything")
    q = search_box("Reason", "by_reason", "A part of it")
    since = TimeFilter("at", "gte", label="Since (UTC)")
    until = TimeFilter("at", "lt", label="Before (UTC)")
    group = django_filters.ModelChoiceFilter(queryset=DeadLetterGroup.objects.all(), widget=forms.HiddenInput)

    class Meta:
        model = LedgerEntry
        fields: list[str] = []

    def by_who(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(actor_name__icontains=value)

    def by_reason(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(reason__icontains=value)
