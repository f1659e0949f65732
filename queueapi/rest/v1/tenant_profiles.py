"""Tenant profiles over REST: look, create, change, delete; each change can be planned first."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.actions.tenant_profiles import (
    PROFILE_FIELDS,
    change_profile,
    create_profile,
    delete_profile,
    plan_profile_change,
    plan_profile_creation,
    plan_profile_deletion,
)
from queueapi.models import TenantProfile
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.v1 import tenant_serializers as wire
from queueapi.rest.v1.plan_serializers import RefusablePlanSerializer
from queueapi.rest.v1.problem_schema import refusals
from queueapi.rest.v1.tenant_filters import ProfileFilter
from queueapi.rest.v1.tenants import given_fields, planned
from queueapi.selectors.tenants import profiles_with_counts

_EXAMPLES: Final = [
    OpenApiExample(
        "Small tenants",
        {"name": "small", "messages_per_s": 100, "bytes_per_s": 1_000_000, "burst_s": 10, "max_queues": 1},
        request_only=True,
    ),
    OpenApiExample(
        "Own queues on services with a label",
        {"name": "gold", "approves_isolation": True, "partitions": 24, "label": "gold", "min_retention_ms": 86_400_000},
        request_only=True,
    ),
]


class TenantProfileViewSet(Conventional, viewsets.ReadOnlyModelViewSet[TenantProfile]):
    """By name. Every tenant has one; the default one is always there."""

    access = Access(Resource.TENANT_PROFILES)
    summaries = {
        "list": "List tenant profiles",
        "retrieve": "Show a tenant profile",
    }
    queryset = profiles_with_counts()
    pagination_class = pagination.ByName
    filterset_class = ProfileFilter

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.ProfileSerializer if self.action == "list" else wire.OneProfileSerializer

    @extend_schema(
        summary="Create a tenant profile",
        request=wire.ProfileChangeSerializer,
        responses={201: wire.OneProfileSerializer},
        examples=_EXAMPLES,
    )
    @plans_itself(RefusablePlanSerializer)
    def create(self, request: Request) -> Response:
        """Where a limit is left out, there is none."""
        given = given_fields(wire.ProfileChangeSerializer, request, "tenant profile", PROFILE_FIELDS)
        if is_dry_run(request):
            return planned(plan_profile_creation(**given))
        return Response(self._told(create_profile(actor_of(request), **given)), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a tenant profile",
        request=wire.ProfileChangeSerializer,
        responses=wire.OneProfileSerializer,
    )
    @plans_itself(RefusablePlanSerializer)
    def partial_update(self, request: Request, **_: Any) -> Response:
        """Quotas of all its tenants follow within seconds; queues that they have stay as they are."""
        profile = self.get_object()
        kind, options = wire.ProfileChangeSerializer, {"instance": profile, "partial": True}
        given = given_fields(kind, request, "tenant profile", PROFILE_FIELDS, **options)
        if is_dry_run(request):
            return planned(plan_profile_change(profile, **given))
        return Response(self._told(change_profile(actor_of(request), profile, **given)))

    @extend_schema(
        summary="Delete a tenant profile",
        responses={
            204: None,
            **refusals({409: "`not_changeable`: tenants have it, or it is the default one."}),
        },
        request=None,
    )
    @plans_itself(RefusablePlanSerializer)
    def destroy(self, request: Request, **_: Any) -> Response:
        """Refused with 409 while tenants have it, and always for the default one."""
        profile = self.get_object()
        if is_dry_run(request):
            return planned(plan_profile_deletion(profile))
        delete_profile(actor_of(request), profile)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _told(self, profile: TenantProfile) -> Any:
        return self.get_serializer(profiles_with_counts().get(pk=profile.pk)).data
