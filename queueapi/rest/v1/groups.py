"""Consumer groups over REST: who reads, how far each is, and setting one to another place."""

from functools import partial
from typing import Any, Final

from django.http import Http404
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.offsets import reset_offsets
from queueapi.errors import PlanChanged
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself
from queueapi.rest.conventions.idempotency import leaves_the_database
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.named_pages import PAGE_PARAMETERS, page_found, paged
from queueapi.rest.permissions import Access
from queueapi.rest.v1 import group_serializers as wire
from queueapi.rest.v1.paths import FoundByText
from queueapi.rest.v1.problem_schema import refusals
from queueapi.selectors.groups import GroupFigures, find_group, groups_with_figures, list_groups
from queueapi.selectors.offset_plans import plan_offsets

_EXAMPLES: Final = [
    OpenApiExample("Everything again", {"to": "earliest"}, request_only=True),
    OpenApiExample("The last half hour again", {"to": "ago", "ago": "PT30M"}, request_only=True),
    OpenApiExample(
        "One partition, past a message",
        {"to": "shift", "count": 1, "topic": "telemetry.0", "partitions": [0], "token": "5d41402abc"},
        request_only=True,
    ),
]
_ASKED: Final = {400: "`invalid_input`: see `errors`.", 404: "`not_found`: the cursor is none of ours."}
_REFUSED: Final = {
    400: "`invalid_input`: see `errors`. `offset_out_of_range`: nothing is committed to shift from.",
    404: "`not_found`: there is no such group. `unknown_topic`: or no such topic or partition.",
    409: "`group_active`: a member reads, or has committed meanwhile; stop its consumers. `plan_changed`: the token is "
    "another plan's.",
}


class GroupViewSet(Conventional, FoundByText, viewsets.ViewSet):
    """By name. A page asks the provider three times, however many groups it has and there are."""

    access = Access(Resource.GROUPS, changes=OPERATE)
    lookup_url_kwarg = "group"
    lookup_value_regex = "[^/]+"

    def get_object(self) -> GroupFigures:
        if (found := find_group(self.kwargs["group"])) is None:
            raise Http404
        return found

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.OneConsumerGroupSerializer

    def get_serializer(self, group: GroupFigures) -> serializers.BaseSerializer[Any]:
        return wire.OneConsumerGroupSerializer(group)

    @extend_schema(
        operation_id="groups_list",
        summary="List consumer groups",
        parameters=[wire.GroupQuerySerializer, *PAGE_PARAMETERS],
        responses={200: wire.ConsumerGroupPageSerializer, **refusals(_ASKED)},
    )
    def list(self, request: Request) -> Response:
        """All that have members or have committed something."""
        query = wire.GroupQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        page, following = page_found(request, partial(list_groups, query.filter()))
        return paged(following, wire.ConsumerGroupSerializer(groups_with_figures(page), many=True).data)

    @extend_schema(
        operation_id="groups_retrieve",
        summary="Look at a consumer group",
        responses={200: wire.OneConsumerGroupSerializer, **refusals({404: "`not_found`: there is no such group."})},
    )
    def retrieve(self, _: Request, **__: Any) -> Response:
        """Its members, and for each partition what it has committed, the end and the lag."""
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Set a group's offsets",
        request=wire.ResetSerializer,
        responses={200: wire.ResetPlanSerializer, **refusals(_REFUSED)},
        parameters=[OpenApiParameter("group", str, OpenApiParameter.PATH)],
        examples=_EXAMPLES,
    )
    @action(detail=True, methods=["post"])
    @plans_itself(wire.ResetPlanSerializer)
    @leaves_the_database
    def offsets(self, request: Request, group: str, **_: Any) -> Response:
        """Answers with what was done in each partition, or, with `dry_run`, with what would be. Refused while a member
        of the group holds one of the partitions."""
        self.get_object()
        given = wire.ResetSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        asked: dict[str, Any] = given.validated_data
        plan = plan_offsets(group, asked["target"], topic=asked.get("topic"), partitions=asked.get("partitions"))
        if (token := asked.get("token")) not in (None, plan.token):
            raise PlanChanged(
                f"{token!r} was shown for another reset; plan anew, and send {plan.token!r} if that is right"
            )
        if not is_dry_run(request):
            reset_offsets(actor_of(request), plan)
        return Response(wire.ResetPlanSerializer(plan).data)
