"""Health over REST: what a monitor asks beyond whether the web server answers."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.selectors.health import health

STATUSES: Final = [("ok", "ok"), ("degraded", "degraded")]


class PartHealthSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="`provider`, `consumers`, `tasks` or `figures`.")
    status = serializers.ChoiceField(STATUSES)
    why = serializers.CharField(help_text="What is wrong, and what to do; empty where nothing is.")


class HealthSerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(STATUSES, help_text="`degraded` where one of the parts is.")
    parts = PartHealthSerializer(many=True)


class HealthView(Conventional):
    access = Access(Resource.SERVICES)
    has_etag = True

    @extend_schema(summary="Whether provider, consumers, workers and pipeline are at work", responses=HealthSerializer)
    def get(self, _: Request) -> Response:
        """What is wrong with which part. For a load balancer, `/healthz` says without a password whether the web server
        and its database answer."""
        return Response(HealthSerializer(health()).data)
