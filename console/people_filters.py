"""What lists of users and tokens can be narrowed to."""

from typing import Any, Final

import django_filters
from django import forms
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone

from console.access import is_told_details
from console.filters import ListFilter, TenantNameFilter, search_box
from queueapi.access.secrets import prefix_of
from queueapi.choices import Role
from queueapi.models import ApiToken

_LIVES: Final = [("valid", "Valid"), ("expired", "Expired"), ("revoked", "Revoked")]
_ACTIVE: Final = [("", "All"), ("true", "Let in"), ("false", "Locked")]


class TokenFilter(ListFilter):
    q = search_box("Search", "search", "Name, beginning or maker")
    life = django_filters.ChoiceFilter(label="State", choices=_LIVES, method="by_life", empty_label="Any state")
    role = django_filters.ChoiceFilter(choices=Role, empty_label="Any role")
    tenant = TenantNameFilter()

    class Meta:
        model = ApiToken
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_told_details(self.request):
            # There is one for them, and others have no name here.
            del self.filters["tenant"]

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        text = Q(name__icontains=value) | Q(created_by__username__icontains=value)
        # A whole token may be pasted here: of that only the beginning is looked for.
        return rows.filter(text | Q(prefix__startswith=prefix_of(value) or value))

    def by_life(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        if value == "revoked":
            return rows.filter(revoked_at__isnull=False)
        expired = Q(expires_at__lte=timezone.now())
        unrevoked = rows.filter(revoked_at__isnull=True)
        return unrevoked.filter(expired) if value == "expired" else unrevoked.exclude(expired)


class UserFilter(ListFilter):
    q = search_box("Search", "search", "Name")
    role = django_filters.ChoiceFilter("account__role", label="Role", choices=Role, empty_label="Any role")
    tenant = TenantNameFilter(field_name="account__tenant")
    active = django_filters.BooleanFilter("is_active", label="Show", widget=forms.Select(choices=_ACTIVE))

    class Meta:
        model = User
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(username__icontains=value)
