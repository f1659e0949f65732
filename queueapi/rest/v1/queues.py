"""Queues over REST: reading, creating, changing, publishing, pausing."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.actions.messages import publish_message
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.actions.queue_checks import check_fields
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.models import Queue
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.v1 import queue_serializers as shapes
from queueapi.rest.v1.paths import FoundByText, queue_lookup
from queueapi.rest.v1.serializers import PublishedSerializer, PublishSerializer
from queueapi.selectors.consumers import consumers_of


class QueueViewSet(FoundByText, viewsets.ReadOnlyModelViewSet[Queue]):
    """A queue in a path is its id, or the name of a system queue whatever its case."""

    queryset = Queue.objects.select_related("tenant").prefetch_related("pauses")
    serializer_class = shapes.QueueSerializer
    pagination_class = pagination.ByName
    filterset_fields = ["tenant", "service_type"]
    lookup_url_kwarg = "queue"
    lookup_value_regex = "[^/]+"

    def get_object(self) -> Queue:
        named = self.kwargs["queue"]
        queue = self.get_queryset().filter(queue_lookup(named)).first()
        if queue is None:
            raise Http404
        self.check_object_permissions(self.request, queue)
        return queue

    @extend_schema(request=shapes.QueueCreationSerializer, responses={201: shapes.QueueSerializer})
    def create(self, request: Request) -> Response:
        """Create a queue and its topics."""
        given = _given(shapes.QueueCreationSerializer, request)
        check_fields(name for name in request.data if name not in given.fields)
        tenant = given.validated_data.pop("tenant", None) or ensure_system_tenant()
        queue = create_queue(actor_of(request), tenant, **given.validated_data)
        return Response(self.get_serializer(queue).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.QueueChangeSerializer, responses=shapes.QueueSerializer)
    def partial_update(self, request: Request, **_: Any) -> Response:
        """Change how it is consumed; hosts do so within seconds, without a restart."""
        queue = self.get_object()
        given = _given(shapes.QueueChangeSerializer, request, instance=queue, partial=True)
        check_fields(request.data)
        change_queue(actor_of(request), queue, **given.validated_data)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=PublishSerializer, responses={201: PublishedSerializer})
    @action(detail=True, methods=["post"])
    def messages(self, request: Request, **_: Any) -> Response:
        """Store one message; answers with its partition and offset once it is on disk."""
        queue = self.get_object()
        message = _given(PublishSerializer, request).validated_data
        published = publish_message(queue, message["tenant"], message["entity"], message["data"])
        return Response(PublishedSerializer(published).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.PausingSerializer, responses=shapes.QueueSerializer)
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, **_: Any) -> Response:
        """Let the queue, a tenant's messages or a partition stand still. Paused already: nothing changes."""
        wanted = _given(shapes.PausingSerializer, request).validated_data
        pause_queue(actor_of(request), self.get_object(), **wanted)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=shapes.ResumeSerializer, responses=shapes.QueueSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, **_: Any) -> Response:
        """Lift exactly that pause; others of the queue hold on. Not paused: nothing changes."""
        wanted = _given(shapes.ResumeSerializer, request).validated_data
        resume_queue(actor_of(request), self.get_object(), **wanted)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(responses=shapes.ConsumerSerializer(many=True))
    @action(detail=True, pagination_class=None, filterset_fields=[])
    def consumers(self, *_: Any, **__: Any) -> Response:
        """Who reads the queue, how each is, and what its time goes into."""
        return Response(shapes.ConsumerSerializer(consumers_of(self.get_object()), many=True).data)


def _given(kind: type[serializers.BaseSerializer[Any]], request: Request, **options: Any) -> Any:
    """What was sent, checked. JSON too deep for Python is the sender's error, whether reading or writing shows it."""
    try:
        given = kind(data=request.data, **options)
        given.is_valid(raise_exception=True)
    except RecursionError as error:
        raise ParseError("the JSON is nested too deeply; flatten it, or send messages in payload_base64") from error
    return given
