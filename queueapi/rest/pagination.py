"""Pages by cursor: steady while rows are added, and as fast on the last page as on the first.

A cursor names the row that a page begins behind, by all that rows are ordered by. The last of that differs from row to
row: however many share the rest, none is shown twice or passed over. Rows are ordered by what has an index alone.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from rest_framework import exceptions
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from queueapi.names import unknown_name
from queueapi.rest.page_sizes import asked_page_size


class Place(NamedTuple):
    """Behind the row with these values, or, backwards, before it. In another order it would be another place."""

    values: list[str]
    is_backwards: bool
    ordering: list[str]

    @classmethod
    def of(cls, cursor: str) -> "Place":
        """ValueError, TypeError for what `cursor` did not write, or no database holds."""
        values, is_backwards, ordering = json.loads(urlsafe_b64decode(cursor))
        if "\0" in "".join(values).encode().decode():
            raise ValueError("a cursor's values are text without NUL")
        return cls(values, bool(is_backwards), ordering)

    @property
    def cursor(self) -> str:
        return urlsafe_b64encode(json.dumps(self).encode()).decode()


class NewestFirst(CursorPagination):
    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering_query_param = "ordering"
    ordering: tuple[str, ...] = ("-created_at", "-id")
    # What `ordering=` may name, and all that rows are ordered by then, ascending; `-` before the name turns it round.
    orderings: Mapping[str, tuple[str, ...]] = {"created_at": ("created_at", "id")}

    def paginate_queryset(self, queryset: Any, request: Request, view: object = None) -> list[Any]:  # noqa: ARG002
        self._url = request.build_absolute_uri()
        self._ordering = self._asked_ordering(request)
        try:
            self._place = self._asked_for(request)
            rows = self._rows(queryset)
        except (ValueError, TypeError, ValidationError) as error:
            raise exceptions.NotFound("this cursor is none of ours; begin without one") from error
        size = asked_page_size(request, self.page_size, self.max_page_size)
        self._page = list(rows[: size + 1])
        has_more = len(self._page) > size
        del self._page[size:]
        if self._is_backwards:
            self._page.reverse()
        self.has_next = self._is_backwards or has_more
        self.has_previous = has_more if self._is_backwards else self._place is not None
        self.display_page_controls = self.has_next or self.has_previous
        return self._page

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        ordering = {
            "name": self.ordering_query_param,
            "required": False,
            "in": "query",
            "description": f"What rows are ordered by; left out: {', '.join(self.ordering)}.",
            "schema": {"type": "string", "enum": [sign + name for name in self.orderings for sign in ("", "-")]},
        }
        told = super().get_schema_operation_parameters(view)
        size = next(parameter for parameter in told if parameter["name"] == self.page_size_query_param)
        size["schema"] |= {"minimum": 1, "maximum": self.max_page_size, "default": self.page_size}
        return [*told, ordering]

    def get_next_link(self) -> str | None:
        return self._link(self._page[-1:], is_backwards=False) if self.has_next else None

    def get_previous_link(self) -> str | None:
        return self._link(self._page[:1], is_backwards=True) if self.has_previous else None

    @property
    def _is_backwards(self) -> bool:
        return self._place is not None and self._place.is_backwards

    def _asked_for(self, request: Request) -> Place | None:
        cursor = request.query_params.get(self.cursor_query_param)
        place = None if cursor is None else Place.of(cursor)
        if place is not None and place.ordering != list(self._ordering):
            raise ValueError("a cursor is of the order it was made in")
        return place

    def _asked_ordering(self, request: Request) -> tuple[str, ...]:
        asked = request.query_params.get(self.ordering_query_param)
        if asked is None:
            return self.ordering
        fields = self.orderings.get(asked.removeprefix("-"))
        if fields is None:
            remedy = unknown_name("ordering", asked.removeprefix("-"), self.orderings)
            raise exceptions.ValidationError({self.ordering_query_param: [remedy]})
        return tuple(_flipped(field) for field in fields) if asked.startswith("-") else fields

    def _rows(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        ordering = [_flipped(field) for field in self._ordering] if self._is_backwards else self._ordering
        rows = queryset.order_by(*ordering)
        return rows if self._place is None else rows.filter(_behind(ordering, self._place.values))

    def _link(self, beside: Sequence[Any], *, is_backwards: bool) -> str:
        """To what is beside this row; where the page has none, beside the row that the page itself was to be."""
        values = [_value(row, field) for row in beside for field in self._ordering]
        if not values and self._place is not None:
            values = self._place.values
        place = Place(values, is_backwards, list(self._ordering))
        return replace_query_param(self._url, self.cursor_query_param, place.cursor)


def _behind(ordering: Sequence[str], position: Sequence[str]) -> Q:
    """The rows that come after that position in this order. What the first field alone decides is asked for by itself,
    so that an index can be entered there."""
    places = list(zip(ordering, position, strict=True))
    behind = reduce(
        lambda rest, place: _beyond(*place) | Q(**{place[0].lstrip("-"): place[1]}) & rest,
        reversed(places[:-1]),
        _beyond(*places[-1]),
    )
    return _beyond(*places[0], or_equal="e") & behind


def _beyond(field: str, value: str, or_equal: str = "") -> Q:
    return Q(**{f"{field.lstrip('-')}__{'lt' if field.startswith('-') else 'gt'}{or_equal}": value})


def _flipped(field: str) -> str:
    return field.removeprefix("-") if field.startswith("-") else f"-{field}"


def _value(row: Any, field: str) -> str:
    return str(reduce(getattr, field.lstrip("-").split("__"), row))


class NewestFailureFirst(NewestFirst):
    ordering = ("-failed_at", "-id")
    orderings = {"failed_at": ("failed_at", "id")}


class NewestSeenFirst(NewestFirst):
    ordering = ("-last_seen", "-id")
    orderings = {"last_seen": ("last_seen", "id"), "open_letters": ("open_letters", "last_seen", "id")}


class NewestAuditedFirst(NewestFirst):
    ordering = ("-at", "-id")
    orderings = {"at": ("at", "id")}


class NewestQuarantinedFirst(NewestFirst):
    """There are few."""

    ordering = ("-at", "-id")
    orderings = {"at": ("at", "id")}


class NewestReplayFirst(NewestFirst):
    ordering = ("-operation__created_at", "-id")
    orderings = {"created_at": ("operation__created_at", "id")}


class NewestFiredFirst(NewestFirst):
    ordering = ("-fired_at", "-id")
    orderings = {"fired_at": ("fired_at", "id")}


class InSequence(NewestFirst):
    """Of one replay."""

    ordering = ("sequence",)
    orderings = {"sequence": ("sequence",)}


class ByName(NewestFirst):
    ordering = ("name", "id")
    orderings = {"name": ("name", "id"), "created_at": ("created_at", "id")}


class ByUserName(NewestFirst):
    ordering = ("username",)
    orderings = {"name": ("username",)}


class ByPartitionOrLag(NewestFirst):
    """There are no more than partitions. `known_lag_s` is -1 where nobody knows."""

    ordering = ("topic", "partition", "id")
    orderings = {
        "topic": ("topic", "partition", "id"),
        "lag_messages": ("lag_messages", "id"),
        "lag_seconds": ("known_lag_s", "id"),
    }


class MostPendingFirst(NewestFirst):
    ordering = ("-pending", "-id")
    orderings = {"pending": ("pending", "id"), "service_id": ("service_id", "request_topic")}


class NewestMinuteFirst(NewestFirst):
    ordering = ("-at", "-id")
    orderings = {"at": ("at", "id")}


class NewestDayFirst(NewestFirst):
    """Of each tenant there is one a day."""

    ordering = ("-day", "-tenant_id")
    orderings = {"day": ("day", "tenant_id")}


class ByTenantId(NewestFirst):
    ordering = ("tenant_id",)
    orderings = {"tenant": ("tenant_id",)}


class ByServiceId(NewestFirst):
    ordering = ("service_id",)
    orderings = {"service_id": ("service_id",)}


class ByPartitionName(NewestFirst):
    """Of the cluster: each has a name of its own."""

    ordering = ("name",)
    orderings = {"name": ("name",)}
