"""Lag over REST, as the pipeline last computed it."""

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.choices import LagStatus
from queueapi.models import LagCurrent, Queue
from queueapi.rest import pagination
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.filters import WholeNumberFilter
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import lag_serializers as wire
from queueapi.selectors.lag import lag_rows, lag_totals, queue_lags, queues_with_status, with_status


class LagFilter(filters.FilterSet):
    queue = filters.UUIDFilter(label="Its queue's id.")
    tenant = filters.UUIDFilter("queue__tenant", label="Whose queue it is.")
    status = filters.ChoiceFilter(choices=LagStatus.choices, method="by_status")
    lag_messages__gte = WholeNumberFilter("lag_messages", "gte", label="At least so many messages.")
    lag_seconds__gte = filters.NumberFilter("lag_seconds", "gte", label="At least so long, where that is known.")

    class Meta:
        model = LagCurrent
        fields: list[str] = []

    def by_status(self, rows: QuerySet[LagCurrent], _name: str, value: str) -> QuerySet[LagCurrent]:
        return with_status(rows, LagStatus(value))


class QueueLagFilter(filters.FilterSet):
    tenant = filters.UUIDFilter(label="Whose queue it is.")
    status = filters.ChoiceFilter(
        choices=LagStatus.choices, method="by_status", label="Queues with a partition of this status."
    )

    class Meta:
        model = Queue
        fields: list[str] = []

    def by_status(self, rows: QuerySet[Queue], _name: str, value: str) -> QuerySet[Queue]:
        return queues_with_status(rows, LagStatus(value))


class LagViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[LagCurrent]):
    """Of each partition. `ordering=-lag_seconds` has the worst first, and those of which nobody knows last."""

    access = Access(Resource.LAG)
    summaries = {
        "list": "List how far consumers lag",
        "retrieve": "Show how far one partition's consumers lag",
        "totals": "Show how far all consumers lag together",
    }
    queryset = lag_rows()
    serializer_class = wire.LagSerializer
    pagination_class = pagination.ByPartitionOrLag
    filterset_class = LagFilter
    also_things = ("totals",)

    @extend_schema(responses=wire.LagTotalsSerializer, filters=True)
    @action(detail=False, pagination_class=None)
    def totals(self, _: Request) -> Response:
        """All partitions that the filter leaves."""
        return Response(wire.LagTotalsSerializer(lag_totals(self.filter_queryset(self.get_queryset()))).data)


class QueueLagViewSet(Conventional, OnlyVisible, mixins.ListModelMixin, viewsets.GenericViewSet[Queue]):
    """Of each queue, all its partitions together."""

    access = Access(Resource.LAG)
    summaries = {
        "list": "List how far queues lag",
    }
    queryset = Queue.objects.only("name", "tenant_id", "created_at")
    serializer_class = wire.QueueLagSerializer
    pagination_class = pagination.ByName
    filterset_class = QueueLagFilter

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ARG002
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(self.get_serializer(queue_lags(page), many=True).data)
