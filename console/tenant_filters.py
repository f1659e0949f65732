"""What lists of tenants and profiles can be narrowed to."""

from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from console.filters import ListFilter, search_box
from queueapi.choices import TenantState
from queueapi.models import Tenant, TenantProfile


class ProfileFilter(ListFilter):
    q = search_box("Search", "search", "Name or description")

    class Meta:
        model = TenantProfile
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(name__icontains=value) | Q(description__icontains=value))


class TenantFilter(ProfileFilter):
    profile = django_filters.ModelChoiceFilter(queryset=TenantProfile.objects.all(), empty_label="Any profile")
    state = django_filters.ChoiceFilter(choices=TenantState, widget=forms.HiddenInput)

    class Meta:
        model = Tenant
        fields: list[str] = []
