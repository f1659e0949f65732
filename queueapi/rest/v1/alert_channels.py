"""Alert channels over REST: look, create, change, delete, test."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, READ, Resource
from queueapi.actions import alert_channels as actions
from queueapi.actions.row_checks import check_names
from queueapi.change_plans import ChangePlan
from queueapi.models import AlertChannel
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer, is_dry_run, plans_itself, rehearsed
from queueapi.rest.conventions.idempotency import leaves_the_database
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.v1 import alert_serializers as wire
from queueapi.selectors.alert_channels import deliveries_of

_EXAMPLES: Final = [
    OpenApiExample(
        "By e-mail",
        {"name": "On call", "kind": "email", "options": {"recipients": ["oncall@example.org"]}},
        request_only=True,
    ),
    OpenApiExample(
        "A webhook, signed",
        {
            "name": "Pager",
            "kind": "webhook",
            "options": {"url": "https://pager.example.org/switchyard", "secret": "a long random text"},
        },
        request_only=True,
    ),
]


class AlertChannelViewSet(Conventional, viewsets.ReadOnlyModelViewSet[AlertChannel]):
    """By name. Rules say what each is told."""

    access = Access(Resource.ALERT_CHANNELS, test=OPERATE, deliveries=READ)
    summaries = {
        "list": "List alert channels",
        "retrieve": "Show an alert channel",
        "deliveries": "List what an alert channel was sent",
    }
    queryset = AlertChannel.objects.all()
    serializer_class = wire.ChannelSerializer
    pagination_class = pagination.ByName
    filterset_fields = ["kind", "enabled"]

    @extend_schema(
        summary="Create an alert channel",
        request=wire.ChannelCreationSerializer,
        responses={201: wire.ChannelSerializer},
        examples=_EXAMPLES,
    )
    @rehearsed
    def create(self, request: Request) -> Response:
        """Nothing is sent there before a rule names it, or somebody tests it."""
        given = self._given(wire.ChannelCreationSerializer, request, actions.CHANNEL_FIELDS)
        channel = actions.create_channel(actor_of(request), **given)
        return Response(self.get_serializer(channel).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change an alert channel",
        request=wire.ChannelChangeSerializer,
        responses={200: wire.ChannelSerializer},
    )
    @rehearsed
    def partial_update(self, request: Request, **_: Any) -> Response:
        """Its kind stays. `options` are given as a whole; secrets that come back hidden stay as they were."""
        channel, known = self.get_object(), ("name", "options", "enabled")
        given = self._given(wire.ChannelChangeSerializer, request, known, instance=channel, partial=True)
        return Response(self.get_serializer(actions.change_channel(actor_of(request), channel, **given)).data)

    @extend_schema(summary="Delete an alert channel", request=None, responses={204: None})
    @rehearsed
    def destroy(self, request: Request, **_: Any) -> Response:
        """Rules tell it nothing more, and what waits for it is not sent."""
        actions.delete_channel(actor_of(request), self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Test an alert channel", request=None, responses=wire.TrialSerializer)
    @action(detail=True, methods=["post"])
    @plans_itself(ChangePlanSerializer)
    @leaves_the_database
    def test(self, request: Request, **_: Any) -> Response:
        """Send a message there now, and answer with what came of it."""
        channel = self.get_object()
        if is_dry_run(request):
            return Response(ChangePlanSerializer(ChangePlan(f"send a test to channel {channel.name}")).data)
        return Response(wire.TrialSerializer(actions.test_channel(actor_of(request), channel)).data)

    @extend_schema(responses=wire.DeliverySerializer(many=True), filters=False)
    @action(detail=True, pagination_class=pagination.NewestFirst, filterset_fields=[])
    def deliveries(self, request: Request, **_: Any) -> Response:
        """The newest first, each with how often it was tried and what went wrong."""
        rows = deliveries_of(self.get_object())
        pages = pagination.NewestFirst()
        page = pages.paginate_queryset(rows, request, view=self)
        return pages.get_paginated_response(wire.DeliverySerializer(page or [], many=True).data)

    def _given(
        self,
        kind: type[serializers.BaseSerializer[Any]],
        request: Request,
        known: tuple[str, ...],
        **options: Any,
    ) -> dict[str, Any]:
        given = kind(data=request.data, **options)
        given.is_valid(raise_exception=True)
        check_names("channel", request.data, known)
        fields: dict[str, Any] = given.validated_data
        return fields
