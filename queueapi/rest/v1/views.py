"""Thin: read what was asked, call the action, say what came of it."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.operations import cancel_operation, pause_operation, resume_operation
from queueapi.models import Operation
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import serializers


class OperationViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[Operation]):
    access = Access(Resource.OPERATIONS, changes=OPERATE)
    summaries = {
        "list": "List operations",
        "retrieve": "Show an operation",
        "cancel": "Cancel an operation",
        "pause": "Pause an operation",
        "resume": "Resume an operation",
    }
    queryset = Operation.objects.all()
    serializer_class = serializers.OperationSerializer
    filterset_fields = ["state", "kind"]

    @extend_schema(request=None, responses={202: serializers.OperationSerializer})
    @action(detail=True, methods=["post"])
    @rehearsed
    def cancel(self, request: Request, **_: Any) -> Response:
        """Ask for its end; what runs stops at its next step."""
        operation = cancel_operation(actor_of(request), self.get_object().id)
        return Response(serializers.OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: serializers.OperationSerializer})
    @action(detail=True, methods=["post"])
    @rehearsed
    def pause(self, request: Request, **_: Any) -> Response:
        """Ask it to wait at its next step until it is resumed."""
        operation = pause_operation(actor_of(request), self.get_object().id)
        return Response(serializers.OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: serializers.OperationSerializer})
    @action(detail=True, methods=["post"])
    @rehearsed
    def resume(self, request: Request, **_: Any) -> Response:
        """Let it go on where it stopped."""
        operation = resume_operation(actor_of(request), self.get_object().id)
        return Response(serializers.OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)
