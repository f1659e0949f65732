"""The cluster over REST: service instances, and the partitions they consume."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.actions.rebalances import plan_draining, set_service_draining
from queueapi.cluster.models import Partition, ServiceInstance
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.v1 import cluster_serializers as wire
from queueapi.rest.v1.cluster_filters import PartitionFilter, ServiceFilter
from queueapi.rest.v1.paths import FoundByText
from queueapi.selectors.rebalances import partitions
from queueapi.selectors.services import services
from queuecore.errors import UnknownService

DRY_RUN = OpenApiParameter("dry_run", bool, description="Only say what would be done.")
_DRAINED = PolymorphicProxySerializer(
    "ServiceOrWhatIf", [wire.OneServiceSerializer, wire.WhatIfSerializer], resource_type_field_name=None
)


def is_dry_run(request: Request) -> bool:
    return request.query_params.get("dry_run", "").lower() in ("true", "1")


class ServiceViewSet(FoundByText, viewsets.ReadOnlyModelViewSet[ServiceInstance]):
    """Those that are there, and those that were lost and not seen again."""

    queryset: QuerySet[ServiceInstance] = services()
    pagination_class = pagination.ByServiceId
    filterset_class = ServiceFilter
    # Ids have dots.
    lookup_value_regex = "[^/]+"

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.ServiceSerializer if self.action == "list" else wire.OneServiceSerializer

    @extend_schema(request=None, responses=_DRAINED, parameters=[DRY_RUN], summary="Drain a service")
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, **_: Any) -> Response:
        """Have it give away all its partitions, as it will be stopped; with `dry_run`, what would move for that."""
        return self._set_draining(request, draining=True)

    @extend_schema(request=None, responses=_DRAINED, parameters=[DRY_RUN], summary="Let a service consume again")
    @action(detail=True, methods=["post"])
    def undrain(self, request: Request, **_: Any) -> Response:
        """Let it have its share again; with `dry_run`, what would move for that."""
        return self._set_draining(request, draining=False)

    def _set_draining(self, request: Request, *, draining: bool) -> Response:
        service = self.get_object()
        try:
            if is_dry_run(request):
                return Response(wire.WhatIfSerializer(plan_draining(service.pk, draining=draining)).data)
            set_service_draining(actor_of(request), service.pk, draining=draining)
        except UnknownService as error:
            # It was lost, or has left meanwhile.
            raise NotFound(error.message) from error
        return Response(self.get_serializer(self.get_object()).data)


class PartitionViewSet(FoundByText, viewsets.ReadOnlyModelViewSet[Partition]):
    """Who consumes what, and who should."""

    queryset: QuerySet[Partition] = partitions()
    serializer_class = wire.PartitionSerializer
    pagination_class = pagination.ByPartitionName
    filterset_class = PartitionFilter
    lookup_value_regex = "[^/]+"
