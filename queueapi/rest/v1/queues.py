"""Queues over REST: reading, creating, changing, publishing, pausing."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, READ, WRITE, Resource
from queueapi.access.tenancy import visible_counts
from queueapi.actions.messages import plan_message, publish_message
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.actions.queue_checks import check_fields
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.config import config
from queueapi.models import Queue
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer, is_dry_run, plans_itself, rehearsed
from queueapi.rest.conventions.idempotency import leaves_the_database
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access, Need, requester_of
from queueapi.rest.short_bodies import read_one
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import queue_serializers as shapes
from queueapi.rest.v1.messages import ENCODE_AS, MessageRoutes, encoding_form
from queueapi.rest.v1.paths import AS_TENANT, FoundByText, queue_of_path
from queueapi.rest.v1.problem_schema import refusals
from queueapi.rest.v1.queue_figures import QueueFigures
from queueapi.rest.v1.queue_life import QueueLife, accepted
from queueapi.rest.v1.serializers import OperationSerializer, PublishedSerializer, PublishSerializer
from queueapi.selectors.consumers import consumers_of
from queueapi.selectors.queue_operations import PROVISION, operation_under_way

_REFUSED: Final = {
    409: "`tenant_suspended`: the problem says why.",
    429: "`queue_overloaded`: the tenant's quota is used up; `Retry-After` says when to come again.",
}


class QueueViewSet(
    Conventional, FoundByText, MessageRoutes, OnlyVisible, QueueFigures, QueueLife, viewsets.ReadOnlyModelViewSet[Queue]
):
    """A queue in a path is its id, or its name whatever its case: of the caller's own tenant, or of that which
    `tenant=` names, then of the system."""

    access = Access(
        Resource.QUEUES,
        lag=Need(READ, Resource.LAG),
        lag_history=Need(READ, Resource.LAG),
        processing=Need(READ, Resource.LAG),
        heat=Need(READ, Resource.LAG),
        messages=Need(WRITE, Resource.MESSAGES, is_shared=True),
        batch=Need(WRITE, Resource.MESSAGES, is_shared=True),
        browse_messages=Need(READ, Resource.MESSAGES),
        message=Need(READ, Resource.MESSAGES),
        tail=Need(READ, Resource.MESSAGES),
        pause=OPERATE,
        resume=OPERATE,
        drain=OPERATE,
        activate=OPERATE,
    )
    summaries = {
        "list": "List queues",
        "retrieve": "Show a queue",
        "create": "Create a queue",
        "partial_update": "Change a queue",
        "pause": "Pause a queue",
        "resume": "Resume a queue",
        "consumers": "List a queue's consumers",
    }
    queryset = Queue.objects.select_related("tenant", "operation", "successor").prefetch_related("pauses")
    serializer_class = shapes.QueueSerializer
    pagination_class = pagination.ByName
    also_things = ("message", "lag", "heat")
    filterset_fields = ["tenant", "service_type", "state"]
    lookup_url_kwarg = "queue"
    lookup_value_regex = "[^/]+"
    path_parameters = (AS_TENANT,)

    def get_object(self) -> Queue:
        filters = self.action in ("browse_messages", "tail")
        queue = queue_of_path(self.request, self.get_queryset(), self.kwargs["queue"], filters=filters)
        self.check_object_permissions(self.request, queue)
        return queue

    @extend_schema(
        request=shapes.QueueCreationSerializer, responses={201: shapes.QueueSerializer, 202: OperationSerializer}
    )
    @rehearsed
    def create(self, request: Request) -> Response:
        """Create a queue and its topics; answers with the operation where the provider takes long."""
        given = _given(shapes.QueueCreationSerializer, request)
        check_fields(name for name in request.data if name not in given.fields)
        tenant = given.validated_data.pop("tenant", None) or ensure_system_tenant()
        queue = create_queue(actor_of(request), tenant, **given.validated_data)
        if (under_way := operation_under_way(queue)) is not None:
            return accepted(under_way)
        return Response(self.get_serializer(queue).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        request=shapes.QueueChangeSerializer, responses={200: shapes.QueueSerializer, 202: OperationSerializer}
    )
    @rehearsed
    def partial_update(self, request: Request, **_: Any) -> Response:
        """Change how it is consumed and kept; hosts do so within seconds, without a restart. Answers with the operation
        where the provider takes long to change its topics."""
        queue = self.get_object()
        given = _given(shapes.QueueChangeSerializer, request, instance=queue, partial=True)
        check_fields(request.data)
        changed = change_queue(actor_of(request), queue, seen=queue.version, **given.validated_data)
        if (under_way := operation_under_way(changed)) is not None and under_way.kind == PROVISION:
            return accepted(under_way)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Publish a message",
        request=PublishSerializer,
        responses={201: PublishedSerializer, **refusals(_REFUSED)},
        parameters=[ENCODE_AS],
    )
    @action(detail=True, methods=["post"])
    @plans_itself(ChangePlanSerializer)
    @leaves_the_database
    def messages(self, request: Request, **_: Any) -> Response:
        """Store one message; answers with its partition and offset once it is on disk."""
        queue = self.get_object()
        message = _given(PublishSerializer, request).validated_data
        if "payload" in message and (form := encoding_form(queue, request)):
            message["data"] = form.from_json(message["payload"])
        elif sent := read_one(request.body, config().rest.max_json_depth, message["tenant"].pk):
            # As it was sent, not as Python would write it.
            message["data"] = sent[0].data
        if is_dry_run(request):
            plan = plan_message(queue, message["tenant"], message["entity"], message["data"])
            return Response(ChangePlanSerializer(plan).data)
        published = publish_message(queue, message["tenant"], message["entity"], message["data"])
        return Response(PublishedSerializer(published).data, status=status.HTTP_201_CREATED)

    messages.mapping["get"] = MessageRoutes.browse_messages.__name__

    @extend_schema(request=shapes.PausingSerializer, responses=shapes.QueueSerializer)
    @action(detail=True, methods=["post"])
    @rehearsed
    def pause(self, request: Request, **_: Any) -> Response:
        """Let the queue, a tenant's messages or a partition stand still. Paused already: nothing changes."""
        wanted = _given(shapes.PausingSerializer, request).validated_data
        pause_queue(actor_of(request), self.get_object(), **wanted)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=shapes.ResumeSerializer, responses=shapes.QueueSerializer)
    @action(detail=True, methods=["post"])
    @rehearsed
    def resume(self, request: Request, **_: Any) -> Response:
        """Lift exactly that pause; others of the queue hold on. Not paused: nothing changes."""
        wanted = _given(shapes.ResumeSerializer, request).validated_data
        resume_queue(actor_of(request), self.get_object(), **wanted)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(responses=shapes.ConsumerSerializer(many=True))
    @action(detail=True, pagination_class=None, filterset_fields=[])
    def consumers(self, *_: Any, **__: Any) -> Response:
        """Who reads the queue, how each is, and what its time goes into."""
        consumers = consumers_of(self.get_object())
        for one in consumers:
            one.tenants = visible_counts(requester_of(self.request), one.tenants)
        return Response(shapes.ConsumerSerializer(consumers, many=True).data)


def _given(kind: type[serializers.BaseSerializer[Any]], request: Request, **options: Any) -> Any:
    """What was sent, checked."""
    given = kind(data=request.data, context={"request": request}, **options)
    given.is_valid(raise_exception=True)
    return given
