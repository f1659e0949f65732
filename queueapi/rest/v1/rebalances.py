"""Rebalances over REST: plan, ask for, look, cancel."""

from contextlib import AbstractContextManager
from typing import Any, Final

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.rebalances import cancel_rebalance, plan_rebalance, start_rebalance
from queueapi.cluster.models import Rebalance
from queueapi.cluster.rows import holding
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself, rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.v1 import rebalance_serializers as wire
from queueapi.rest.v1.cluster_filters import RebalanceFilter
from queueapi.rest.v1.cluster_serializers import WhatIfSerializer
from queueapi.rest.v1.serializers import OperationSerializer
from queueapi.selectors.rebalances import rebalances

_EXAMPLES: Final = [
    OpenApiExample(
        "Without one service",
        {"reason": "machine-2 gets a new disk", "leaving": ["machine-2-host"]},
        request_only=True,
    ),
    OpenApiExample(
        "What two more services would change (dry_run)",
        {"joining": [{"id": "machine-3-host"}, {"id": "machine-4-host", "weight": 2}], "partitions": {"Main": 12}},
        request_only=True,
    ),
]


class RebalanceViewSet(Conventional, viewsets.ReadOnlyModelViewSet[Rebalance]):
    """Newest first. Those that came of services joining or leaving are among them."""

    access = Access(Resource.REBALANCES, changes=OPERATE)
    summaries = {
        "list": "List rebalances",
        "retrieve": "Show a rebalance",
        "create": "Start a rebalance",
        "cancel": "Cancel a rebalance",
    }
    queryset: QuerySet[Rebalance] = Rebalance.objects.all()
    filterset_class = RebalanceFilter

    def holding(self) -> AbstractContextManager[None]:
        return holding()

    def get_queryset(self) -> QuerySet[Rebalance]:
        return rebalances() if self.action == "list" else Rebalance.objects.all()

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.RebalanceSerializer if self.action == "list" else wire.OneRebalanceSerializer

    @extend_schema(
        request=wire.RebalanceRequestSerializer,
        responses={202: OperationSerializer},
        examples=_EXAMPLES,
    )
    @plans_itself(WhatIfSerializer)
    def create(self, request: Request) -> Response:
        """Have partitions assigned anew; answers with the operation to follow, or with what would be done."""
        given = wire.RebalanceRequestSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        asked: dict[str, Any] = given.validated_data
        reason = asked.pop("reason")
        if is_dry_run(request):
            return Response(WhatIfSerializer(plan_rebalance(**asked)).data)
        operation = start_rebalance(actor_of(request), reason=reason, **asked)
        return Response(OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: wire.OneRebalanceSerializer})
    @action(detail=True, methods=["post"])
    @rehearsed
    def cancel(self, request: Request, **_: Any) -> Response:
        """Ask for its end: what has not moved stays where it is."""
        cancel_rebalance(actor_of(request), self.get_object().id)
        return Response(self.get_serializer(self.get_object()).data, status=status.HTTP_202_ACCEPTED)
