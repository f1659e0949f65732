"""What lists can be narrowed to."""

from typing import Any
from uuid import UUID

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from queueapi.choices import LetterState, OperationState
from queueapi.models import AuditEntry, DeadLetter, Operation, Queue, Tenant


def _text(label: str, method: str, placeholder: str) -> django_filters.CharFilter:
    widget = forms.TextInput(attrs={"type": "search", "placeholder": placeholder, "autocomplete": "off"})
    return django_filters.CharFilter(label=label, method=method, widget=widget)


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


class QueueChoice(django_filters.fields.ModelChoiceField):
    """Names are unique per tenant only."""

    def label_from_instance(self, obj: Queue) -> str:
        return obj.name if obj.tenant.is_system else f"{obj.name} ({obj.tenant})"


class QueueChoiceFilter(django_filters.ModelChoiceFilter):
    field_class = QueueChoice


class QueueFilter(django_filters.FilterSet):
    q = _text("Search", "search", "Name or topic")
    tenant = django_filters.ModelChoiceFilter(queryset=Tenant.objects.all(), empty_label="Any tenant")

    class Meta:
        model = Queue
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(name__icontains=value) | Q(topic__icontains=value))


class LetterFilter(django_filters.FilterSet):
    q = _text("Search", "search", "Topic, key, id…")
    error = _text("Error", "by_error", "Class or message…")
    queue = QueueChoiceFilter(queryset=Queue.objects.select_related("tenant"), empty_label="Any queue")
    tenant = django_filters.ModelChoiceFilter(queryset=Tenant.objects.all(), empty_label="Any tenant")
    state = django_filters.ChoiceFilter(choices=LetterState, widget=forms.HiddenInput)

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(topic__icontains=value) | Q(handler__icontains=value) | Q(exception_message__icontains=value)
        exact = _as_uuid(value)
        return rows.filter(text | Q(pk=exact) | Q(key=exact) if exact else text)

    def by_error(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(exception_class__icontains=value) | Q(exception_message__icontains=value)
        return rows.filter(text | Q(fingerprint=value.lower()))


class OperationFilter(django_filters.FilterSet):
    q = _text("Search", "search", "Summary, kind or who started it")
    state = django_filters.ChoiceFilter(choices=OperationState, widget=forms.HiddenInput)

    class Meta:
        model = Operation
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(summary__icontains=value) | Q(kind__icontains=value) | Q(created_by__username__icontains=value)
        exact = _as_uuid(value)
        return rows.filter(text | Q(pk=exact) if exact else text)


class AuditFilter(django_filters.FilterSet):
    actor = _text("Who", "by_actor", "User name")
    action = _text("Action", "by_action", "create, cancel…")
    target = _text("Object", "by_object", "Type or id")

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    def by_actor(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(actor_name__icontains=value)

    def by_action(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(action__icontains=value)

    def by_object(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(object_type__icontains=value) | Q(object_id__icontains=value))
