"""What lists of tenants and profiles can be narrowed to."""

from typing import Any

from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters

from queueapi.choices import TenantState
from queueapi.models import Tenant, TenantProfile


class ProfileFilter(filters.FilterSet):
    text = filters.CharFilter(method="by_text", label="Part of the name or the description.")

    class Meta:
        model = TenantProfile
        fields: list[str] = []

    def by_text(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(name__icontains=value) | Q(description__icontains=value))


class TenantFilter(ProfileFilter):
    state = filters.ChoiceFilter(choices=TenantState)

    class Meta:
        model = Tenant
        fields = ["profile", "state"]
