"""What one talks to: for programs that support several releases, and for people who report a fault."""

from typing import Any

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.config import config
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import HasRole
from queueapi.version import NAME, VERSION


class VersionSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField(help_text="Of the release that answers.")
    api = serializers.CharField(help_text="The version of this interface, as in its paths.")
    provider = serializers.CharField(help_text="What keeps messages: `log` or `kafka`.")
    database = serializers.CharField(help_text="`sqlite` or `postgresql`.")
    mode = serializers.CharField(help_text="`local` or `production`.")


class VersionView(Conventional):
    permission_classes = (HasRole,)
    has_etag = True

    @extend_schema(summary="Which release answers, and what it runs on", responses=VersionSerializer)
    def get(self, _: Request) -> Response:
        """The same for everybody who has a role. Whether the process can serve is told at `/healthz`."""
        installation = config()
        told = {
            "name": NAME,
            "version": VERSION,
            "api": "v1",
            "provider": installation.queue.type,
            "database": connection.vendor,
            "mode": installation.mode,
        }
        return Response(VersionSerializer(told).data)
