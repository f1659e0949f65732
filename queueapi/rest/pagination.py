"""Pages by cursor: steady while rows are added, and as fast on the last page as on the first."""

from rest_framework.pagination import CursorPagination


class NewestFirst(CursorPagination):
    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering: str | tuple[str, ...] = "-created_at"


class NewestFailureFirst(NewestFirst):
    ordering = ("-failed_at", "-id")


class NewestSeenFirst(NewestFirst):
    ordering = ("-last_seen", "-id")


class NewestQuarantinedFirst(NewestFirst):
    ordering = ("-at", "-id")


class NewestReplayFirst(NewestFirst):
    ordering = ("-operation__created_at", "-id")


class InSequence(NewestFirst):
    ordering = "sequence"


class ByName(NewestFirst):
    ordering = "name"


class ByPartition(NewestFirst):
    ordering = ("topic", "partition")
