"""Tenants over REST: look, create, change, suspend, resume, delete; each change can be planned first."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, WRITE, Resource
from queueapi.actions.isolation import isolate_tenant
from queueapi.actions.row_checks import check_names
from queueapi.actions.tenant_removal import delete_tenant, plan_tenant_deletion
from queueapi.actions.tenant_states import plan_resumption, plan_suspension, resume_tenant, suspend_tenant
from queueapi.actions.tenants import (
    TENANT_FIELDS,
    change_tenant,
    create_tenant,
    plan_tenant_change,
    plan_tenant_creation,
)
from queueapi.change_plans import ChangePlan
from queueapi.models import Tenant
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself, rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import tenant_serializers as wire
from queueapi.rest.v1.isolation import EXAMPLE, REFUSED
from queueapi.rest.v1.isolation_serializers import DirectIsolationSerializer, IsolationRequestSerializer
from queueapi.rest.v1.plan_serializers import RefusablePlanSerializer
from queueapi.rest.v1.problem_schema import refusals
from queueapi.rest.v1.tenant_filters import TenantFilter
from queueapi.selectors.isolation import isolation_requests
from queueapi.selectors.tenants import tenants_with_counts

_HAS_THINGS: Final = {
    409: "`not_changeable`: it has queues, dead letters or stored messages of its own, or is the system's."
}
_EXAMPLES: Final = [
    OpenApiExample("With the default profile", {"name": "Greenhouse Ltd"}, request_only=True),
    OpenApiExample(
        "With a quota of its own",
        {"name": "Harbour Cold Store", "messages_per_s": 200, "burst_s": 10, "description": "Contract 2231"},
        request_only=True,
    ),
]


class TenantViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[Tenant]):
    """By name. One that is suspended publishes nothing, and what it has is consumed as ever."""

    access = Access(Resource.TENANTS, suspend=OPERATE, resume=OPERATE, isolate=WRITE)
    queryset = tenants_with_counts()
    pagination_class = pagination.ByName
    filterset_class = TenantFilter
    summaries = {
        "list": "List tenants",
        "retrieve": "Show a tenant",
    }

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.TenantSerializer if self.action == "list" else wire.OneTenantSerializer

    @extend_schema(
        summary="Create a tenant",
        request=wire.TenantChangeSerializer,
        responses={201: wire.OneTenantSerializer},
        examples=_EXAMPLES,
    )
    @plans_itself(RefusablePlanSerializer)
    def create(self, request: Request) -> Response:
        """It has the default profile where none is named."""
        given = given_fields(wire.TenantChangeSerializer, request, "tenant", TENANT_FIELDS)
        if is_dry_run(request):
            return planned(plan_tenant_creation(**given))
        tenant = create_tenant(actor_of(request), **given)
        return Response(self._told(tenant), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a tenant",
        request=wire.TenantChangeSerializer,
        responses=wire.OneTenantSerializer,
    )
    @plans_itself(RefusablePlanSerializer)
    def partial_update(self, request: Request, **_: Any) -> Response:
        """Its name, description, profile or own quotas, which hold within seconds."""
        tenant = self.get_object()
        given = given_fields(
            wire.TenantChangeSerializer, request, "tenant", TENANT_FIELDS, instance=tenant, partial=True
        )
        if is_dry_run(request):
            return planned(plan_tenant_change(tenant, **given))
        return Response(self._told(change_tenant(actor_of(request), tenant, **given)))

    @extend_schema(
        summary="Delete a tenant",
        responses={
            204: None,
            **refusals(_HAS_THINGS),
        },
        request=None,
    )
    @plans_itself(RefusablePlanSerializer)
    def destroy(self, request: Request, **_: Any) -> Response:
        """Refused with 409 while it has queues, dead letters or stored messages of its own."""
        tenant = self.get_object()
        if is_dry_run(request):
            return planned(plan_tenant_deletion(tenant))
        delete_tenant(actor_of(request), tenant)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Suspend a tenant",
        request=wire.SuspensionSerializer,
        responses=wire.OneTenantSerializer,
        examples=[OpenApiExample("Unpaid", {"reason": "invoice 4711 is unpaid"}, request_only=True)],
    )
    @action(detail=True, methods=["post"])
    @plans_itself(RefusablePlanSerializer)
    def suspend(self, request: Request, **_: Any) -> Response:
        """What is published for it is refused with 409 and the reason, until it is resumed."""
        tenant, given = self.get_object(), wire.SuspensionSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        reason = given.validated_data["reason"]
        if is_dry_run(request):
            return planned(plan_suspension(tenant, reason))
        return Response(self._told(suspend_tenant(actor_of(request), tenant, reason)))

    @extend_schema(summary="Resume a tenant", request=None, responses=wire.OneTenantSerializer)
    @action(detail=True, methods=["post"])
    @plans_itself(RefusablePlanSerializer)
    def resume(self, request: Request, **_: Any) -> Response:
        """Let it publish again. Not suspended: nothing changes."""
        tenant = self.get_object()
        if is_dry_run(request):
            return planned(plan_resumption(tenant))
        return Response(self._told(resume_tenant(actor_of(request), tenant)))

    @extend_schema(
        summary="Isolate a tenant at once",
        request=DirectIsolationSerializer,
        responses={202: IsolationRequestSerializer, **REFUSED},
        examples=[EXAMPLE],
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def isolate(self, request: Request, **_: Any) -> Response:
        """Give it queues of its own without a request of its people: one that is approved is made, and carried out."""
        tenant, given = self.get_object(), DirectIsolationSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        asked = given.validated_data
        made = isolate_tenant(actor_of(request), tenant, asked["queues"], asked["reason"])
        told = IsolationRequestSerializer(isolation_requests().get(pk=made.pk), context=self.get_serializer_context())
        return Response(told.data, status=status.HTTP_202_ACCEPTED)

    def _told(self, tenant: Tenant) -> Any:
        return self.get_serializer(tenants_with_counts().get(pk=tenant.pk)).data


def planned(plan: ChangePlan) -> Response:
    return Response(RefusablePlanSerializer(plan).data)


def given_fields(
    kind: type[serializers.BaseSerializer[Any]], request: Request, what: str, known: tuple[str, ...], **options: Any
) -> dict[str, Any]:
    """What was sent, checked; a name of no field is refused with the right one."""
    given = kind(data=request.data, **options)
    given.is_valid(raise_exception=True)
    check_names(what, request.data, known)
    fields: dict[str, Any] = given.validated_data
    return fields
