"""Routing over REST: by which version messages go, and who has yet to follow."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.selectors.routing import routing_standing


class RoutingProducerSerializer(serializers.Serializer[Any]):
    producer_id = serializers.CharField()
    version = serializers.IntegerField(help_text="By which it routes. 0: it knows none yet.")
    acknowledged_at = serializers.DateTimeField(help_text="Since when it routes by that.")
    lease_expires_at = serializers.DateTimeField(help_text="Until when it counts, unless it is heard of before.")


class RoutingSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(help_text="The latest. 0: none was published yet.")
    published_at = serializers.DateTimeField(allow_null=True)
    producers = RoutingProducerSerializer(many=True)
    lagging = serializers.ListField(
        child=serializers.CharField(), help_text="Producers that have yet to acknowledge the latest version."
    )


class RoutingView(Conventional):
    access = Access(Resource.ROUTING)
    has_etag = True

    @extend_schema(
        summary="The routing version that messages go by, the producers, and who lags", responses=RoutingSerializer
    )
    def get(self, _: Request) -> Response:
        """A new version reaches every producer within a second; one that lags for longer is stuck, or cut off from the
        cluster's database."""
        return Response(RoutingSerializer(routing_standing()).data)
