"""Thin: read what was asked, call the action, say what came of it."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.actions.operations import cancel_operation
from queueapi.models import LagCurrent, Operation, Tenant
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.v1 import serializers


class TenantViewSet(viewsets.ReadOnlyModelViewSet[Tenant]):
    queryset = Tenant.objects.all()
    serializer_class = serializers.TenantSerializer
    pagination_class = pagination.ByName


class OperationViewSet(viewsets.ReadOnlyModelViewSet[Operation]):
    queryset = Operation.objects.all()
    serializer_class = serializers.OperationSerializer
    filterset_fields = ["state", "kind"]

    @extend_schema(request=None, responses={202: serializers.OperationSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, **_: Any) -> Response:
        """Ask for its end; what runs stops at its next step."""
        operation = cancel_operation(actor_of(request), self.get_object().id)
        return Response(serializers.OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)


class LagViewSet(viewsets.ReadOnlyModelViewSet[LagCurrent]):
    queryset = LagCurrent.objects.all()
    serializer_class = serializers.LagSerializer
    pagination_class = pagination.ByPartition
    filterset_fields = ["queue"]
