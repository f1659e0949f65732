"""What lists can be narrowed to."""

from typing import Any
from uuid import UUID

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from queueapi.choices import LetterState, OperationState
from queueapi.models import AuditEntry, DeadLetter, DeadLetterGroup, Operation, Queue, Tenant
from queueapi.selectors.dead_letters import letters_for_lists
from queueapi.selectors.letter_filter import LetterFilter


def search_box(label: str, method: str, placeholder: str) -> django_filters.CharFilter:
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
    q = search_box("Search", "search", "Name or topic")
    tenant = django_filters.ModelChoiceFilter(queryset=Tenant.objects.all(), empty_label="Any tenant")

    class Meta:
        model = Queue
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(name__icontains=value) | Q(topic__icontains=value))


def _time(label: str) -> django_filters.DateTimeFilter:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return django_filters.DateTimeFilter(label=label, widget=widget)


class LetterListFilter(django_filters.FilterSet):
    """What the address asks for, as a `LetterFilter`."""

    q = django_filters.CharFilter(
        label="Search",
        widget=forms.TextInput(
            attrs={"type": "search", "placeholder": "Error, topic, key, id…", "autocomplete": "off"}
        ),
    )
    queue = QueueChoiceFilter(queryset=Queue.objects.select_related("tenant"), empty_label="Any queue")
    tenant = django_filters.ModelChoiceFilter(queryset=Tenant.objects.all(), empty_label="Any tenant")
    since = _time("Failed since (UTC)")
    until = _time("Failed before (UTC)")
    state = django_filters.ChoiceFilter(choices=LetterState, widget=forms.HiddenInput)
    group = django_filters.ModelChoiceFilter(queryset=DeadLetterGroup.objects.all(), widget=forms.HiddenInput)
    error = django_filters.CharFilter(widget=forms.HiddenInput)

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    @property
    def wanted(self) -> LetterFilter:
        """What makes no sense is left out."""
        self.form.is_valid()
        given: dict[str, Any] = self.form.cleaned_data
        return LetterFilter(
            queue=getattr(given.get("queue"), "pk", None),
            tenant=getattr(given.get("tenant"), "pk", None),
            state=LetterState(given["state"]) if given.get("state") else None,
            group=getattr(given.get("group"), "pk", None),
            fingerprint=given.get("error") or "",
            text=given.get("q") or "",
            since=given.get("since"),
            until=given.get("until"),
        )

    def filter_queryset(self, _rows: QuerySet[Any]) -> QuerySet[Any]:
        return letters_for_lists(self.wanted)


class OperationFilter(django_filters.FilterSet):
    q = search_box("Search", "search", "Summary, kind or who started it")
    state = django_filters.ChoiceFilter(choices=OperationState, widget=forms.HiddenInput)

    class Meta:
        model = Operation
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(summary__icontains=value) | Q(kind__icontains=value) | Q(created_by__username__icontains=value)
        exact = _as_uuid(value)
        return rows.filter(text | Q(pk=exact) if exact else text)


class AuditFilter(django_filters.FilterSet):
    actor = search_box("Who", "by_actor", "User name")
    action = search_box("Action", "by_action", "create, cancel…")
    target = search_box("Object", "by_object", "Type or id")

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    def by_actor(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(actor_name__icontains=value)

    def by_action(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(action__icontains=value)

    def by_object(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(object_type__icontains=value) | Q(object_id__icontains=value))
