"""What the list of isolation requests can be narrowed to."""

from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from console.access import is_told_details
from console.filters import ListFilter, TenantNameFilter, search_box
from queueapi.choices import IsolationState
from queueapi.models import IsolationRequest


class IsolationFilter(ListFilter):
    q = search_box("Search", "search", "Tenant, reason or who asked")
    tenant = TenantNameFilter()
    state = django_filters.ChoiceFilter(choices=IsolationState, widget=forms.HiddenInput)

    class Meta:
        model = IsolationRequest
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_told_details(self.request):
            # There is one for them, and others have no name here.
            del self.filters["tenant"]

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(reason__icontains=value) | Q(requested_by_name__icontains=value) | Q(tenant__name__icontains=value)
        return rows.filter(text)
