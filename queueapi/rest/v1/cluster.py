"""The cluster over REST: service instances, and the partitions they consume."""

from contextlib import AbstractContextManager
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.rebalances import plan_draining, set_service_draining
from queueapi.cluster.models import Partition, ServiceInstance
from queueapi.cluster.rows import holding
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.v1 import cluster_serializers as wire
from queueapi.rest.v1.cluster_filters import PartitionFilter, ServiceFilter
from queueapi.rest.v1.paths import AS_TENANT, FoundByText
from queueapi.rest.v1.problem_schema import refusals
from queueapi.rest.v1.resolving import ENTITY, QUEUE, place_asked_for
from queueapi.selectors.rebalances import partitions
from queueapi.selectors.services import services
from queuecore.errors import UnknownService


class ServiceViewSet(Conventional, FoundByText, viewsets.ReadOnlyModelViewSet[ServiceInstance]):
    """Those that are there, and those that were lost and not seen again."""

    access = Access(Resource.SERVICES, changes=OPERATE)
    summaries = {
        "list": "List services",
        "retrieve": "Show a service",
    }
    queryset: QuerySet[ServiceInstance] = services()
    pagination_class = pagination.ByServiceId
    filterset_class = ServiceFilter
    # Ids have dots.
    lookup_value_regex = "[^/]+"

    def holding(self) -> AbstractContextManager[None]:
        return holding()

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.ServiceSerializer if self.action == "list" else wire.OneServiceSerializer

    @extend_schema(request=None, responses=wire.OneServiceSerializer, summary="Drain a service")
    @action(detail=True, methods=["post"])
    @plans_itself(wire.WhatIfSerializer)
    def drain(self, request: Request, **_: Any) -> Response:
        """Have it give away all its partitions, as it will be stopped; with `dry_run`, what would move for that."""
        return self._set_draining(request, draining=True)

    @extend_schema(request=None, responses=wire.OneServiceSerializer, summary="Let a service consume again")
    @action(detail=True, methods=["post"])
    @plans_itself(wire.WhatIfSerializer)
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


class PartitionViewSet(Conventional, FoundByText, viewsets.ReadOnlyModelViewSet[Partition]):
    """Who consumes what, and who should."""

    access = Access(Resource.PARTITIONS)
    summaries = {
        "list": "List partitions, and who consumes them",
        "retrieve": "Show a partition, and who consumes it",
    }
    queryset: QuerySet[Partition] = partitions()
    serializer_class = wire.PartitionSerializer
    pagination_class = pagination.ByPartitionName
    filterset_class = PartitionFilter
    lookup_value_regex = "[^/]+"
    also_things = ("resolve",)

    @extend_schema(
        summary="Where an entity's messages go",
        parameters=[QUEUE, ENTITY, AS_TENANT],
        responses={
            200: wire.PlaceSerializer,
            **refusals({400: "`invalid_input`: see `errors`.", 404: "There is no such queue, or no such tenant."}),
        },
    )
    @action(detail=False, pagination_class=None, filter_backends=[])
    def resolve(self, request: Request) -> Response:
        """By the latest routing version; and who consumes them there, where the cluster knows the partition."""
        return Response(wire.PlaceSerializer(place_asked_for(request)).data)
