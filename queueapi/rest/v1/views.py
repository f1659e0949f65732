"""Thin: read what was asked, call the action, say what came of it."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from queueapi.actions.dead_letters import replay_letters
from queueapi.actions.messages import publish_message
from queueapi.actions.operations import cancel_operation
from queueapi.models import DeadLetter, LagCurrent, Operation, Queue, ServiceInstance, Tenant
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.v1 import serializers
from queuecore.topics import SYSTEM_TENANT


class FoundByText(APIView):
    """For resources whose path holds any text. NUL is in no text of PostgreSQL's, which cannot even be asked."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if any("\0" in value for value in kwargs.values()):
            raise Http404


class TenantViewSet(viewsets.ReadOnlyModelViewSet[Tenant]):
    queryset = Tenant.objects.all()
    serializer_class = serializers.TenantSerializer
    pagination_class = pagination.ByName


class QueueViewSet(FoundByText, viewsets.ReadOnlyModelViewSet[Queue]):
    """A queue in a path is its id, or the name of a system queue whatever its case."""

    queryset = Queue.objects.select_related("tenant")
    serializer_class = serializers.QueueSerializer
    pagination_class = pagination.ByName
    filterset_fields = ["tenant", "service_type"]
    lookup_url_kwarg = "queue"
    lookup_value_regex = "[^/]+"

    def get_object(self) -> Queue:
        named = self.kwargs["queue"]
        queue = self.get_queryset().filter(_queue_lookup(named)).first()
        if queue is None:
            raise Http404
        self.check_object_permissions(self.request, queue)
        return queue

    @extend_schema(request=serializers.PublishSerializer, responses={201: serializers.PublishedSerializer})
    @action(detail=True, methods=["post"])
    def messages(self, request: Request, **_: Any) -> Response:
        """Store one message; answers with its partition and offset once it is on disk."""
        queue = self.get_object()
        message = _message_in(request)
        published = publish_message(queue, message["tenant"], message["entity"], message["data"])
        return Response(serializers.PublishedSerializer(published).data, status=status.HTTP_201_CREATED)


class DeadLetterViewSet(viewsets.ReadOnlyModelViewSet[DeadLetter]):
    queryset = DeadLetter.objects.all()
    serializer_class = serializers.DeadLetterSerializer
    pagination_class = pagination.NewestFailureFirst
    filterset_fields = ["queue", "tenant", "state", "fingerprint"]

    @extend_schema(request=None, responses={202: serializers.OperationSerializer})
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, **_: Any) -> Response:
        """Send the letter to its queue again; answers with the operation to follow."""
        letter = self.get_object()
        operation = replay_letters(actor_of(request), [letter.id])
        return Response(serializers.OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)


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


class ServiceViewSet(FoundByText, viewsets.ReadOnlyModelViewSet[ServiceInstance]):
    queryset: QuerySet[ServiceInstance] = ServiceInstance.objects.all()
    serializer_class = serializers.ServiceSerializer
    pagination_class = None


def _message_in(request: Request) -> dict[str, Any]:
    """What was sent, checked. JSON too deep for Python is the sender's error, whether reading or writing shows it."""
    try:
        given = serializers.PublishSerializer(data=request.data)
        given.is_valid(raise_exception=True)
    except RecursionError as error:
        raise ParseError("the JSON is nested too deeply; flatten it, or send it in payload_base64") from error
    message: dict[str, Any] = given.validated_data
    return message


def _queue_lookup(named: str) -> Q:
    try:
        return Q(id=UUID(named))
    except ValueError:
        return Q(name__iexact=named, tenant_id=SYSTEM_TENANT)
