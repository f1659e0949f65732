"""The audit over REST: search it, and take it along as a file."""

from collections.abc import Callable, Iterator
from typing import Any

from django.http import StreamingHttpResponse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request

from queueapi.access.table import Resource
from queueapi.models import AuditEntry
from queueapi.rest import pagination
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.exporting import batches, csv_lines, json_lines, streamed
from queueapi.rest.permissions import Access, requester_of
from queueapi.rest.tenancy import OnlyVisible


class AuditFilter(filters.FilterSet):
    actor = filters.CharFilter("actor_name", label="The name of who did it.")
    action = filters.CharFilter(label="What was done, as `create`.")
    object_type = filters.CharFilter(label="To what kind of thing, as `queue`.")
    object_id = filters.CharFilter(label="To which.")
    tenant = filters.UUIDFilter("tenant_id", label="Whose thing it was.")
    token = filters.UUIDFilter(label="The id of the token by which they were let in.")
    since = filters.IsoDateTimeFilter("at", "gte", label="Then or later: a time with its zone.")
    until = filters.IsoDateTimeFilter("at", "lt", label="Before then: a time with its zone.")

    class Meta:
        model = AuditEntry
        fields: list[str] = []


class TenantAuditSerializer(serializers.ModelSerializer[AuditEntry]):
    """For a tenant's people: where the system's people work is no business of theirs."""

    actor = serializers.CharField(source="actor_name", help_text="Who did it; a part of the system has a name as well.")
    tenant = serializers.UUIDField(source="tenant_id", allow_null=True, help_text="Whose thing it was.")

    class Meta:
        model = AuditEntry
        fields = [
            "id", "at", "actor", "token", "request_id", "tenant", "action", "object_type", "object_id", "before",
            "after",
        ]  # fmt: skip


class AuditSerializer(TenantAuditSerializer):
    class Meta(TenantAuditSerializer.Meta):
        fields = [*TenantAuditSerializer.Meta.fields, "address"]


class AuditViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[AuditEntry]):
    """Who changed what, newest first. A tenant's administrators see what was done to their tenant's things."""

    access = Access(Resource.AUDIT)
    summaries = {
        "list": "List what was changed, and by whom",
        "retrieve": "Show an entry of the audit",
    }
    queryset = AuditEntry.objects.all()
    serializer_class = AuditSerializer
    pagination_class = pagination.NewestAuditedFirst
    filterset_class = AuditFilter

    def get_serializer_class(self) -> type[serializers.BaseSerializer[AuditEntry]]:
        is_fake = getattr(self, "swagger_fake_view", False)
        is_whole = is_fake or requester_of(self.request).tenant_id is None
        return AuditSerializer if is_whole else TenantAuditSerializer

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, summary="The audit as CSV")
    @action(detail=False, url_path=r"export\.csv", pagination_class=None)
    def export_csv(self, request: Request) -> StreamingHttpResponse:
        """All entries that the filter leaves, newest first. What changed is JSON in a cell."""
        return self._export(request, csv_lines, "text/csv; charset=utf-8", "audit.csv")

    @extend_schema(responses={(200, "application/x-ndjson"): OpenApiTypes.STR}, summary="The audit as JSON lines")
    @action(detail=False, url_path=r"export\.jsonl", pagination_class=None)
    def export_jsonl(self, request: Request) -> StreamingHttpResponse:
        """All entries that the filter leaves, newest first, each as one line of JSON."""
        return self._export(request, json_lines, "application/x-ndjson", "audit.jsonl")

    def _export(
        self, request: Request, write: Callable[[Iterator[Any]], Iterator[bytes]], kind: str, name: str
    ) -> StreamingHttpResponse:
        entries = self.filter_queryset(self.get_queryset())
        shown = (self.get_serializer(batch, many=True).data for batch in batches(entries))
        return streamed(request, write(shown), kind, name)
