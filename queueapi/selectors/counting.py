"""How many rows belong to each of a list's rows, in the query that reads the list."""

from typing import Any

from django.db.models import Count, IntegerField, QuerySet, Subquery
from django.db.models.functions import Coalesce


def number_of(rows: QuerySet[Any], belonging_to: str) -> Coalesce:
    """Of these, which are filtered by an `OuterRef`, those whose field `belonging_to` is the same. Each of the list's
    rows is counted for by itself: grouped, all there are would be."""
    grouped = rows.order_by().values(belonging_to).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(grouped, output_field=IntegerField()), 0)
