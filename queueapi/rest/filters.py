"""How lists are narrowed by what rows belong to."""

from typing import Any, Final

from django import forms
from django.db import models
from django.db.models import QuerySet
from django_filters import rest_framework as filters
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request


class _TrueOrFalseField(forms.Field):
    _values: Final = {"true": True, "1": True, "false": False, "0": False}

    def to_python(self, value: Any) -> bool | None:
        if value in self.empty_values:
            return None
        if str(value).lower() not in self._values:
            raise forms.ValidationError(f"{str(value)[:100]!r} is neither true nor false")
        return self._values[str(value).lower()]


class TrueOrFalseFilter(filters.BooleanFilter):
    """Refuses what is neither: the library's own takes that for no filter."""

    field_class = _TrueOrFalseField

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, widget=forms.TextInput, **options)


class WholeNumberFilter(filters.NumberFilter):
    """Of what is counted there is no half."""

    field_class = forms.IntegerField


class ByIdFilterSet(filters.FilterSet):
    """Asks for a tenant or a queue by its id. One that does not exist has no rows, as one that the caller may not know
    of: looking it up first would tell them apart."""

    FILTER_DEFAULTS = {
        **filters.FilterSet.FILTER_DEFAULTS,
        models.ForeignKey: {"filter_class": filters.UUIDFilter},
        models.BooleanField: {"filter_class": TrueOrFalseFilter},
        models.IntegerField: {"filter_class": WholeNumberFilter},
        models.PositiveIntegerField: {"filter_class": WholeNumberFilter},
    }


class ByIdFilterBackend(filters.DjangoFilterBackend):
    """Refuses a filter without a value, which would mean everything. Any text has an empty one in it."""

    filterset_base: Any = ByIdFilterSet

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filterset = self.get_filterset_class(view, queryset)
        for name, each in {} if filterset is None else filterset.base_filters.items():
            if request.query_params.get(name) == "" and not isinstance(each, filters.CharFilter):
                raise ValidationError({name: ["this says nothing; leave it out, or say what you look for"]})
        rows: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return rows
