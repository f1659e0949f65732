"""A queue's figures over REST: its lag and how it was, what became of its messages, how evenly they are spread."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.tenancy import visible_shares
from queueapi.models import PartitionHeat, Queue, QueueSkew
from queueapi.rest.permissions import requester_of
from queueapi.rest.tenancy import seen_by
from queueapi.rest.v1 import queue_figures_serializers as wire
from queueapi.rest.v1.histories import ResolutionQuerySerializer, asked_time
from queueapi.rest.v1.lag_serializers import LagHistorySerializer, QueueLagSerializer
from queueapi.selectors.heat import queue_heat
from queueapi.selectors.histories import lag_history, processing_history
from queueapi.selectors.lag import queue_lags


class QueueFigures(GenericAPIView[Queue]):
    """What QueueViewSet has of them. All are as the pipeline last computed them."""

    @extend_schema(summary="Show how far a queue lags", responses=QueueLagSerializer)
    @action(detail=True, pagination_class=None, filter_backends=[])
    def lag(self, *_: Any, **__: Any) -> Response:
        """All its partitions together; the status is that of the worst."""
        [lag] = queue_lags([self.get_object()])
        return Response(QueueLagSerializer(lag).data)

    @extend_schema(
        summary="Show how far a queue lagged",
        parameters=[ResolutionQuerySerializer],
        responses=LagHistorySerializer,
    )
    @action(detail=True, url_path="lag/history", pagination_class=None, filter_backends=[])
    def lag_history(self, request: Request, **_: Any) -> Response:
        """By the minute, the hour or the day. A stretch without samples is left out."""
        queue, asked = self.get_object(), asked_time(request, ResolutionQuerySerializer)
        rows = seen_by(self, lag_history(queue, asked.resolution))
        # A part of what is ever longer, and no thing.
        return Response(dict(LagHistorySerializer(asked.told(rows)).data))

    @extend_schema(
        summary="Show what became of a queue's messages",
        parameters=[ResolutionQuerySerializer],
        responses=wire.ProcessingHistorySerializer,
    )
    @action(detail=True, pagination_class=None, filter_backends=[])
    def processing(self, request: Request, **_: Any) -> Response:
        """By the minute, the hour or the day: how many were handled, failed or given up, and how long attempts took."""
        queue, asked = self.get_object(), asked_time(request, ResolutionQuerySerializer)
        rows = seen_by(self, processing_history(queue, asked.resolution))
        return Response(dict(wire.ProcessingHistorySerializer(asked.told(rows)).data))

    @extend_schema(summary="Show how evenly a queue's messages are spread", responses=wire.QueueHeatSerializer)
    @action(detail=True, pagination_class=None, filter_backends=[])
    def heat(self, request: Request, **_: Any) -> Response:
        """The hundred partitions that have most of them, the entities and tenants these are of, and what another number
        of partitions or another hash function would change. A tenant's people see which entities are their own."""
        queue = self.get_object()
        skews, rows = (seen_by(self, model.objects.filter(queue=queue)) for model in (QueueSkew, PartitionHeat))
        heat = queue_heat(skews, rows)
        for row in heat.partitions:
            row.entities = visible_shares(requester_of(request), queue, row.entities)
            row.tenants = visible_shares(requester_of(request), queue, row.tenants)
        return Response(wire.QueueHeatSerializer(heat).data)
