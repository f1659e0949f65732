"""What lists of a tenant's own things can be narrowed to: nothing that they offer names another's."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet

from console.access import viewer
from console.alert_filters import AlertFilter
from console.filters import LetterListFilter, ListFilter, search_box
from queueapi.access.tenancy import visible_filter
from queueapi.models import Alert, DeadLetter, Queue
from queueapi.selectors.dead_letters import letters_for_lists
from queueapi.selectors.letter_filter import LetterFilter
from queueapi.selectors.tenant_figures import queues_used_by
from queuecore.topics import SYSTEM_TENANT

_WHOSE = [("own", "Our own"), ("shared", "Shared by all")]


class OwnQueueFilter(ListFilter):
    q = search_box("Search", "search", "Name")
    whose = django_filters.ChoiceFilter(label="Whose", choices=_WHOSE, method="by_owner", empty_label="Own and shared")

    class Meta:
        model = Queue
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(name__icontains=value)

    def by_owner(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        shared = Q(tenant=SYSTEM_TENANT)
        return rows.filter(shared) if value == "shared" else rows.exclude(shared)


class QueueChoice(django_filters.fields.ModelChoiceField):
    """A tenant has few enough to choose from. One of its own may be called as a shared one is."""

    def label_from_instance(self, obj: Queue) -> str:
        return f"{obj.name} (shared)" if obj.tenant.is_system else obj.name


class QueueChoiceFilter(django_filters.ModelChoiceFilter):
    field_class = QueueChoice


class OwnLetterFilter(LetterListFilter):
    queue = QueueChoiceFilter(queryset=lambda request: _queues(request), empty_label="Any queue")

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("tenant", "group", "error"):
            del self.filters[name]

    @property
    def wanted(self) -> LetterFilter:
        narrowed = visible_filter(viewer(self.request), super().wanted)
        if narrowed is None:
            raise TypeError("the filter for a tenant's letters asked for another's")
        return narrowed

    def filter_queryset(self, _rows: QuerySet[Any]) -> QuerySet[Any]:
        return letters_for_lists(self.wanted)


class OwnAlertFilter(AlertFilter):
    """Rules are no page of theirs, and there is one tenant for them."""

    queue = QueueChoiceFilter(queryset=lambda request: _own_queues(request), empty_label="Any queue")

    class Meta:
        model = Alert
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("tenant", "rule"):
            del self.filters[name]


def _own_queues(request: Any) -> QuerySet[Queue]:
    """Alerts of those that all share are the system's."""
    return Queue.objects.filter(tenant=viewer(request).tenant_id).select_related("tenant").order_by("name")


def _queues(request: Any) -> QuerySet[Queue]:
    tenant = viewer(request).tenant_id
    return Queue.objects.none() if tenant is None else queues_used_by(tenant).order_by("name")
