"""Counting in few queries: what belongs to each of a list's rows in its own, several things in one."""

from typing import Any

from django.db.models import Count, IntegerField, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce


def number_of(rows: QuerySet[Any], belonging_to: str) -> Coalesce:
    """Of these, which are filtered by an `OuterRef`, those whose field `belonging_to` is the same. Each of the list's
    rows is counted for by itself: grouped, all there are would be."""
    grouped = rows.order_by().values(belonging_to).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(grouped, output_field=IntegerField()), 0)


def counts_of(*several: QuerySet[Any, Any]) -> list[int]:
    """How many rows each of these has. One query."""
    counted = [_counted(rows, place) for place, rows in enumerate(several)]
    found = dict(counted[0].union(*counted[1:], all=True)) if counted else {}
    return [found.get(place, 0) for place in range(len(several))]


def _counted(rows: QuerySet[Any, Any], place: int) -> QuerySet[Any, Any]:
    """One row, or none where nothing is counted."""
    of_place = rows.order_by().annotate(place=Value(place)).values("place")
    counted: QuerySet[Any, Any] = of_place.annotate(number=Count("*")).values_list("place", "number")
    return counted
