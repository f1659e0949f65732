"""Isolation over REST: ask for queues of a tenant's own, decide on that, follow it, and return to the shared ones."""

from contextlib import AbstractContextManager
from typing import Any, Final

from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, WRITE, Resource
from queueapi.actions import isolation as actions
from queueapi.choices import IsolationState
from queueapi.locking import row_locked
from queueapi.models import IsolationRequest
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import isolation_serializers as wire
from queueapi.rest.v1.problem_schema import refusals
from queueapi.selectors.isolation import isolation_requests

REFUSED: Final = refusals(
    {
        400: "`invalid_input`: the tenant cannot have such queues; the problem says what to enter instead.",
        409: "`not_changeable`: in this state that cannot be done.",
    }
)
EXAMPLE: Final = OpenApiExample(
    "Of its own, with more partitions",
    {"queues": [{"name": "Main", "partitions": 12, "retention_ms": 86_400_000}], "reason": "bursts of 5,000/s in May"},
    request_only=True,
)


class IsolationFilter(filters.FilterSet):
    state = filters.ChoiceFilter(choices=IsolationState)

    class Meta:
        model = IsolationRequest
        fields = ["tenant", "state"]


class IsolationRequestViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[IsolationRequest]):
    """The newest first. A tenant's people see their tenant's."""

    access = Access(
        Resource.ISOLATION_REQUESTS,
        create=OPERATE,
        partial_update=OPERATE,
        comment=OPERATE,
        withdraw=OPERATE,
        approve=WRITE,
        refuse=WRITE,
        retry=WRITE,
        retire=WRITE,
    )
    summaries = {"list": "List isolation requests", "retrieve": "Show an isolation request"}
    queryset = isolation_requests()
    serializer_class = wire.IsolationRequestSerializer
    pagination_class = pagination.NewestFirst
    filterset_class = IsolationFilter

    def holding(self) -> AbstractContextManager[None]:
        """Whatever is done with a request, its tenant is locked first."""
        return row_locked(self._get_thing().tenant)

    @extend_schema(
        summary="Request queues of a tenant's own",
        request=wire.IsolationCreationSerializer,
        responses={201: wire.IsolationRequestSerializer, **REFUSED},
        examples=[EXAMPLE],
    )
    @rehearsed
    def create(self, request: Request) -> Response:
        """Where the tenant's profile approves by itself, it is carried out at once; else somebody decides."""
        asked = self._checked(wire.IsolationCreationSerializer, request)
        made = actions.request_isolation(actor_of(request), asked["tenant"], asked["queues"], asked["reason"])
        return Response(self._told(made), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change what was asked for",
        request=wire.IsolationChangeSerializer,
        responses={200: wire.IsolationRequestSerializer, **REFUSED},
    )
    @rehearsed
    def partial_update(self, request: Request, **_: Any) -> Response:
        """While nobody has decided on it."""
        found, asked = self.get_object(), self._checked(wire.IsolationChangeSerializer, request)
        return Response(self._told(actions.change_request(actor_of(request), found, **asked)))

    @extend_schema(
        summary="Approve a request",
        request=wire.ApprovalSerializer,
        responses={200: wire.IsolationRequestSerializer, **REFUSED},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def approve(self, request: Request, **_: Any) -> Response:
        """Have it carried out; `operation` is what does so. Nobody approves what they have asked for themselves."""
        found, asked = self.get_object(), self._checked(wire.ApprovalSerializer, request)
        return Response(self._told(actions.approve_request(actor_of(request), found, asked["comment"])))

    @extend_schema(
        summary="Refuse a request",
        request=wire.IsolationRefusalSerializer,
        responses={200: wire.IsolationRequestSerializer, **REFUSED},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def refuse(self, request: Request, **_: Any) -> Response:
        """Decide against it, and say why."""
        found, asked = self.get_object(), self._checked(wire.IsolationRefusalSerializer, request)
        return Response(self._told(actions.refuse_request(actor_of(request), found, asked["comment"])))

    @extend_schema(
        summary="Withdraw a request",
        request=None,
        responses={200: wire.IsolationRequestSerializer, **REFUSED},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def withdraw(self, request: Request, **_: Any) -> Response:
        """For who has asked for it, while nobody has decided on it."""
        return Response(self._told(actions.withdraw_request(actor_of(request), self.get_object())))

    @extend_schema(
        summary="Comment on a request",
        request=wire.CommentTextSerializer,
        responses={200: wire.IsolationRequestSerializer, **REFUSED},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def comment(self, request: Request, **_: Any) -> Response:
        """For whoever sees it."""
        found, asked = self.get_object(), self._checked(wire.CommentTextSerializer, request)
        return Response(self._told(actions.comment_on_request(actor_of(request), found, asked["text"])))

    @extend_schema(
        summary="Try again what has failed",
        request=None,
        responses={200: wire.IsolationRequestSerializer, **REFUSED},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def retry(self, request: Request, **_: Any) -> Response:
        """It goes on from where it was."""
        return Response(self._told(actions.retry_request(actor_of(request), self.get_object())))

    @extend_schema(
        summary="Return to the shared queues",
        request=wire.ReturnSerializer,
        responses={200: wire.IsolationRequestSerializer, **REFUSED},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def retire(self, request: Request, **_: Any) -> Response:
        """Let the tenant's messages go to the shared queues again, in their order, and remove its own queues."""
        found, asked = self.get_object(), self._checked(wire.ReturnSerializer, request)
        return Response(self._told(actions.return_to_shared(actor_of(request), found, **asked)))

    def _checked(self, kind: type[serializers.BaseSerializer[Any]], request: Request) -> dict[str, Any]:
        given = kind(data=request.data, context=self.get_serializer_context())
        given.is_valid(raise_exception=True)
        checked: dict[str, Any] = given.validated_data
        return checked

    def _told(self, request: IsolationRequest) -> Any:
        return self.get_serializer(isolation_requests().get(pk=request.pk)).data
