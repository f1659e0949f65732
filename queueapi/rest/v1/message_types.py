"""Message types over REST: which protobuf message a topic carries."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.actions.message_types import (
    change_message_type,
    create_message_type,
    delete_message_type,
    plan_message_type,
)
from queueapi.models import MessageType
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself, rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.v1 import message_type_serializers as wire
from queueapi.rest.v1.paths import FoundByText
from queueapi.rest.v1.problem_schema import refusals
from queueapi.selectors.message_types import message_types

_SOURCE: Final = 'syntax = "proto3";\npackage shop;\nmessage Order {\n  string id = 1;\n  int64 amount = 2;\n}\n'
_EXAMPLE: Final = OpenApiExample(
    "From a source",
    {"name": "order", "message": "shop.Order", "files": {"shop/order.proto": _SOURCE}, "topics": ["orders"]},
    request_only=True,
)
_NEXT: Final = OpenApiExample(
    "The next version",
    {"files": {"shop/order.proto": _SOURCE.replace("}\n", "  string note = 3;\n}\n")}},
    request_only=True,
)
_WRONG: Final = {400: "`invalid_input`: `detail` says which file and line, field or topic cannot be, and why."}
_REFUSED: Final = {
    **_WRONG,
    404: "`not_found`: there is no such message type.",
    409: "`incompatible`: messages would be misread; `errors` names each field, and what to do.",
}


class MessageTypeViewSet(Conventional, FoundByText, viewsets.ReadOnlyModelViewSet[MessageType]):
    """By name, whatever its case in a path."""

    access = Access(Resource.MESSAGE_TYPES)
    summaries = {
        "list": "List message types",
        "retrieve": "Look at a message type, with its description",
    }
    queryset = message_types()
    pagination_class = pagination.ByName
    lookup_field = "name__iexact"
    lookup_url_kwarg = "name"
    lookup_value_regex = "[^/]+"

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.MessageTypeSerializer if self.action == "list" else wire.OneMessageTypeSerializer

    @extend_schema(
        summary="Enter a message type",
        request=wire.MessageTypeCreationSerializer,
        responses={201: wire.OneMessageTypeSerializer, **refusals(_WRONG)},
        examples=[_EXAMPLE],
    )
    @rehearsed
    def create(self, request: Request) -> Response:
        """Its topics' messages are decoded by it from now on, and JSON that is published to them can be encoded."""
        created = create_message_type(actor_of(request), **_given(wire.MessageTypeCreationSerializer, request))
        return Response(wire.OneMessageTypeSerializer(created).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a message type",
        request=wire.MessageTypeChangeSerializer,
        responses={200: wire.OneMessageTypeSerializer, **refusals(_REFUSED)},
        examples=[_NEXT],
    )
    @plans_itself(wire.MessageTypePlanSerializer)
    def partial_update(self, request: Request, **_: Any) -> Response:
        """Give it a next version, or other topics; with `dry_run`, what that would mean. Refused where messages of the
        one version would be misread as the other."""
        message_type = self.get_object()
        given = _given(wire.MessageTypeChangeSerializer, request)
        if is_dry_run(request):
            return Response(wire.MessageTypePlanSerializer(plan_message_type(message_type, **given)).data)
        change_message_type(actor_of(request), message_type, **given)
        return Response(wire.OneMessageTypeSerializer(self.get_object()).data)

    @extend_schema(
        summary="Remove a message type",
        request=None,
        responses={204: None},
    )
    @rehearsed
    def destroy(self, request: Request, **_: Any) -> Response:
        """Messages stay as they are, and are shown as what they look like."""
        delete_message_type(actor_of(request), self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _given(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    given = kind(data=request.data)
    given.is_valid(raise_exception=True)
    asked: dict[str, Any] = given.validated_data
    return asked
