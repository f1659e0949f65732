"""What the audit can be narrowed to. It has every change there ever was: whole names are found in all of it by an
index, parts of them in the newest."""

from typing import Any, Final

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from console.filters import ListFilter, TimeFilter, search_box
from queueapi.models import AuditEntry

SEARCHED: Final = 25_000


class AuditFilter(ListFilter):
    actor = search_box("Who", "by_actor", "User name")
    action = search_box("Action", "by_action", "create, cancel…")
    target = search_box("Object", "by_object", "Type or id")
    q = search_box("Before or after", "by_content", "A value, or a field")
    since = TimeFilter("at", "gte", label="Since (UTC)")
    until = TimeFilter("at", "lt", label="Before (UTC)")
    tenant = django_filters.UUIDFilter("tenant_id", widget=forms.HiddenInput)

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_searching = False

    @property
    def is_search_bounded(self) -> bool:
        """Whether there are older entries that were not searched. Known once the rows were asked for."""
        return self._is_searching and AuditEntry.objects.order_by()[SEARCHED : SEARCHED + 1].exists()

    def by_actor(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return self._named(rows, value, "actor_name")

    def by_action(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return self._named(rows, value, "action")

    def by_object(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return self._named(rows, value, "object_id", "object_type")

    def by_content(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return self._newest(rows).filter(Q(before__icontains=value) | Q(after__icontains=value))

    def _named(self, rows: QuerySet[Any], value: str, *fields: str) -> QuerySet[Any]:
        for field in fields:
            if AuditEntry.objects.filter(**{field: value}).order_by().exists():
                return rows.filter(**{field: value})
        part = Q()
        for field in fields:
            part |= Q(**{f"{field}__icontains": value})
        return self._newest(rows).filter(part)

    def _newest(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Ids rise with time."""
        self._is_searching = True
        newest = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        return rows.filter(pk__gt=newest - SEARCHED)
