"""Requests that services wait for the answers of, over REST."""

from typing import Any, Final

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.models import RequestCurrent, RequestStats
from queueapi.models.request_stats import RequestHistory
from queueapi.rest import pagination
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.filters import WholeNumberFilter
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible, seen_by
from queueapi.selectors.histories import Resolution
from queueapi.selectors.pending_requests import request_history, request_totals

_FIGURES: Final = (
    "service_id", "request_topic", "pending", "pending_limit", "pending_memory_bytes", "oldest_pending_ms", "sent",
    "answered", "failed", "timed_out", "not_stored", "cancelled", "refused", "late", "orphans", "lag_p50_ms",
    "lag_p95_ms", "lag_p99_ms",
)  # fmt: skip
_HELP: Final = {
    "pending_limit": {"help_text": "The most that may be; the next would be refused."},
    "failed": {"help_text": "Answered with an error."},
    "not_stored": {"help_text": "The provider did not take them."},
    "refused": {"help_text": "Never sent, as too many were pending."},
    "late": {"help_text": "Answers that nobody waited for any more."},
    "orphans": {"help_text": "Answers to requests of another life of the instance."},
    "lag_p50_ms": {"help_text": "Half of the answers took no longer; null where none came."},
}


class RequestFilter(filters.FilterSet):
    service_id = filters.CharFilter(label="Who asks.")
    request_topic = filters.CharFilter(label="What is asked.")
    pending__gte = WholeNumberFilter("pending", "gte", label="At least so many pending.")
    timed_out__gte = WholeNumberFilter("timed_out", "gte", label="At least so many that had no answer in time.")

    class Meta:
        model = RequestCurrent
        fields: list[str] = []


class RequestHistoryFilter(RequestFilter):
    to = filters.IsoDateTimeFilter("at", "lt", label="Before then: a time with its zone.")
    resolution = filters.ChoiceFilter(
        choices=[(one.value, one.value) for one in Resolution],
        method="leave",
        label="How long a stretch is. Left out: a minute.",
    )

    class Meta:
        model = RequestHistory
        fields: list[str] = []

    def leave(self, rows: QuerySet[Any], _name: str, _value: str) -> QuerySet[Any]:
        """The view has chosen them by it."""
        return rows

    @classmethod
    def get_filters(cls) -> dict[str, Any]:
        # A filter cannot be declared by this name: it is a word of Python's.
        begin = filters.IsoDateTimeFilter("at", "gte", label="Then or later: a time with its zone.")
        return {**super().get_filters(), "from": begin}


class RequestSerializer(serializers.ModelSerializer[RequestCurrent]):
    """One service instance's requests to one topic: what is pending now, and what was counted in the minute before."""

    class Meta:
        model = RequestCurrent
        fields = ["id", *_FIGURES, "as_of"]
        extra_kwargs = _HELP


class RequestHistorySerializer(serializers.ModelSerializer[RequestStats]):
    """The most that was pending in one stretch of time, and what was counted in it."""

    class Meta:
        model = RequestStats
        fields = ["at", *_FIGURES]
        extra_kwargs = {**_HELP, "at": {"help_text": "When the stretch began."}}


class RequestTotalsSerializer(serializers.Serializer[Any]):
    services = serializers.IntegerField(help_text="How many ask, and were heard of in the last minute of all samples.")
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="Of all of them: `pending`, `timed_out`, and so on."
    )
    oldest_pending_ms = serializers.IntegerField()
    slowest_p99_ms = serializers.FloatField(allow_null=True, help_text="Of the service and topic where it is longest.")
    as_of = serializers.DateTimeField(allow_null=True)


class PendingRequestViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[RequestCurrent]):
    """By service instance and topic, most pending first."""

    access = Access(Resource.PENDING_REQUESTS)
    summaries = {
        "list": "List pending requests by service and topic",
        "retrieve": "Show one service's requests to one topic",
        "totals": "Show the requests of all services together",
    }
    queryset = RequestCurrent.objects.all()
    serializer_class = RequestSerializer
    pagination_class = pagination.MostPendingFirst
    filterset_class = RequestFilter
    also_things = ("totals",)

    @extend_schema(responses=RequestTotalsSerializer)
    @action(detail=False, pagination_class=None, filter_backends=[])
    def totals(self, _: Request) -> Response:
        """What is pending now, and what was counted in the minute before."""
        return Response(RequestTotalsSerializer(request_totals()).data)


class RequestHistoryViewSet(Conventional, OnlyVisible, mixins.ListModelMixin, viewsets.GenericViewSet[RequestStats]):
    """By service instance, topic and minute, hour or day, newest first."""

    access = Access(Resource.PENDING_REQUESTS)
    summaries = {
        "list": "List what requests were like, by the minute, hour or day",
    }
    queryset = RequestStats.objects.all()
    serializer_class = RequestHistorySerializer
    pagination_class = pagination.NewestMinuteFirst
    filterset_class = RequestHistoryFilter

    def get_queryset(self) -> QuerySet[Any]:
        """Where the filter is about to refuse what is asked for, minutes."""
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        asked = self.request.query_params.get("resolution")
        resolution = next((one for one in Resolution if one == asked), Resolution.MINUTE)
        return seen_by(self, request_history(resolution))
