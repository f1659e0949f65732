"""Replays over REST: plan, start, look, pause, resume, cancel."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.replays import cancel_replay, pause_replay, resume_replay, start_replay
from queueapi.choices import ReplayItemState
from queueapi.models import Operation, Replay
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself, rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import replay_serializers as wire
from queueapi.selectors.replay_plans import plan_replay
from queueapi.selectors.replays import replays_with_operations

_STATE = OpenApiParameter("state", str, description=f"One of {', '.join(ReplayItemState.values)}.")


class ReplayViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[Replay]):
    access = Access(Resource.REPLAYS, changes=OPERATE)
    summaries = {
        "list": "List replays",
        "retrieve": "Show a replay",
        "create": "Start a replay",
        "items": "List what became of a replay's letters",
        "pause": "Pause a replay",
        "resume": "Resume a replay",
        "cancel": "Cancel a replay",
    }
    queryset = replays_with_operations()
    serializer_class = wire.ReplaySerializer
    pagination_class = pagination.NewestReplayFirst
    filterset_fields = {"operation__state": ["exact"], "target": ["exact"]}

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Its operation, as actions do."""
        with transaction.atomic():
            list(Operation.objects.select_for_update().filter(replay__pk=self.get_object().pk).values_list("pk"))
            yield

    @extend_schema(
        request=wire.ReplayRequestSerializer,
        responses={202: wire.ReplaySerializer},
    )
    @plans_itself(wire.ReplayPlanSerializer)
    def create(self, request: Request) -> Response:
        """Send letters again; answers with the replay to follow, or with the plan."""
        given = wire.ReplayRequestSerializer(data=request.data, context={"request": request})
        given.is_valid(raise_exception=True)
        asked: dict[str, Any] = given.validated_data
        selection, target, settings = asked["selection"], asked.get("target"), asked["settings"]
        if is_dry_run(request):
            return Response(wire.ReplayPlanSerializer(plan_replay(selection, target, settings)).data)
        reason = asked["reason"]
        replay = start_replay(actor_of(request), selection, target=target, settings=settings, reason=reason)
        return Response(self.get_serializer(replay).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=wire.ReplayItemSerializer(many=True), parameters=[_STATE], filters=False)
    @action(detail=True, pagination_class=pagination.InSequence)
    def items(self, request: Request, **_: Any) -> Response:
        """What became of each letter, in the order in which they are sent."""
        items = self.get_object().items.all()
        if state := request.query_params.get("state", ""):
            items = items.filter(state=state.replace("\0", ""))
        pages = pagination.InSequence()
        page = pages.paginate_queryset(items, request, view=self)
        return pages.get_paginated_response(wire.ReplayItemSerializer(page or [], many=True).data)

    @extend_schema(request=None, responses={202: wire.ReplaySerializer})
    @action(detail=True, methods=["post"])
    @rehearsed
    def pause(self, request: Request, **_: Any) -> Response:
        """Send no more until it is resumed."""
        pause_replay(actor_of(request), self.get_object())
        return self._accepted()

    @extend_schema(request=None, responses={202: wire.ReplaySerializer})
    @action(detail=True, methods=["post"])
    @rehearsed
    def resume(self, request: Request, **_: Any) -> Response:
        """Go on where it was paused."""
        resume_replay(actor_of(request), self.get_object())
        return self._accepted()

    @extend_schema(request=None, responses={202: wire.ReplaySerializer})
    @action(detail=True, methods=["post"])
    @rehearsed
    def cancel(self, request: Request, **_: Any) -> Response:
        """Send no more, and open again what was not sent."""
        cancel_replay(actor_of(request), self.get_object())
        return self._accepted()

    def _accepted(self) -> Response:
        return Response(self.get_serializer(self.get_object()).data, status=status.HTTP_202_ACCEPTED)
