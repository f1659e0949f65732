"""How lists are narrowed by what rows belong to."""

from typing import Any

from django.db import models
from django_filters import rest_framework as filters


class ByIdFilterSet(filters.FilterSet):
    """Asks for a tenant or a queue by its id. One that does not exist has no rows, as one that the caller may not know
    of: looking it up first would tell them apart."""

    FILTER_DEFAULTS = {**filters.FilterSet.FILTER_DEFAULTS, models.ForeignKey: {"filter_class": filters.UUIDFilter}}


class ByIdFilterBackend(filters.DjangoFilterBackend):
    filterset_base: Any = ByIdFilterSet
