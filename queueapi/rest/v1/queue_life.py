"""The life of queues over REST: resize, drain, activate, delete, each with its plan."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.actions.queue_ends import activate_queue, delete_queue, drain_queue
from queueapi.actions.resizing import resize_queue
from queueapi.models import Operation, Queue
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import DRY_RUN, is_dry_run, plans_itself, rehearsed
from queueapi.rest.v1 import queue_life_serializers as wire
from queueapi.rest.v1.paths import AS_TENANT
from queueapi.rest.v1.queue_serializers import QueueSerializer
from queueapi.rest.v1.serializers import OperationSerializer
from queueapi.selectors.queue_plans import plan_deletion, plan_drain
from queueapi.selectors.resize_plans import plan_resize

# Of what a DELETE asks for, OpenAPI knows no body.
_MOVE_TO: Final = OpenApiParameter(
    "move_to", str, description="The queue that gets the messages it has left. Left out: they are consumed first."
)
_DISCARD: Final = OpenApiParameter(
    "discard_letters", bool, description="Whether dead letters that nobody has decided on are discarded."
)
_ANSWERS: Final = {200: wire.QueuePlanSerializer, 202: OperationSerializer}


class QueueLife(GenericAPIView[Queue]):
    """What QueueViewSet has of it."""

    @extend_schema(
        summary="Drain a queue",
        request=wire.DrainSerializer,
        responses=_ANSWERS,
    )
    @action(detail=True, methods=["post"])
    @plans_itself(wire.QueuePlanSerializer)
    def drain(self, request: Request, **_: Any) -> Response:
        """Let it take no more messages, and be consumed until it is empty; answers with the operation, or the plan."""
        queue, asked = self.get_object(), _checked(wire.DrainSerializer, request, request.data)
        if is_dry_run(request):
            return Response(wire.QueuePlanSerializer(plan_drain(queue, asked.get("to"))).data)
        return accepted(drain_queue(actor_of(request), queue, to=asked.get("to")))

    @extend_schema(summary="Resize a queue", request=wire.ResizeSerializer, responses=_ANSWERS)
    @action(detail=True, methods=["post"])
    @plans_itself(wire.QueuePlanSerializer)
    def resize(self, request: Request, **_: Any) -> Response:
        """Give it another number of partitions: new ones, consumed once all before are done, so that each entity's
        messages keep their order; answers with the operation, or the plan."""
        queue, asked = self.get_object(), _checked(wire.ResizeSerializer, request, request.data)
        if is_dry_run(request):
            return Response(wire.QueuePlanSerializer(plan_resize(queue, asked["partitions"])).data)
        return accepted(resize_queue(actor_of(request), queue, partitions=asked["partitions"]))

    @extend_schema(summary="Activate a drained queue", request=None, responses=QueueSerializer)
    @action(detail=True, methods=["post"])
    @rehearsed
    def activate(self, request: Request, **_: Any) -> Response:
        """Let a queue that is drained take messages again; what drains or deletes it is cancelled."""
        activate_queue(actor_of(request), self.get_object())
        return Response(QueueSerializer(self.get_object()).data)

    @extend_schema(
        summary="Delete a queue",
        request=wire.DeletionSerializer,
        responses=_ANSWERS,
        parameters=[_MOVE_TO, _DISCARD],
    )
    @plans_itself(wire.QueuePlanSerializer)
    def destroy(self, request: Request, **_: Any) -> Response:
        """Drain it, or move what is left, and remove it with its topics; answers with the operation, or the plan."""
        queue = self.get_object()
        # Not every client can send a body with a DELETE.
        named = request.query_params.copy()
        for other in (DRY_RUN, AS_TENANT.name):
            named.pop(other, None)
        asked = _checked(wire.DeletionSerializer, request, request.data or named)
        move_to, discards = asked.get("move_to"), asked["discard_letters"]
        if is_dry_run(request):
            return Response(wire.QueuePlanSerializer(plan_deletion(queue, move_to, discard_letters=discards)).data)
        return accepted(delete_queue(actor_of(request), queue, move_to=move_to, discard_letters=discards))


def accepted(operation: Operation) -> Response:
    """It is under way, and can be followed."""
    return Response(OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)


def _checked(kind: type[serializers.BaseSerializer[Any]], request: Request, data: Any) -> dict[str, Any]:
    given = kind(data=data, context={"request": request})
    given.is_valid(raise_exception=True)
    checked: dict[str, Any] = given.validated_data
    return checked
