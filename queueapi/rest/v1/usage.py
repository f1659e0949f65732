"""What tenants used, over REST: by day, added up, and as a file."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.http import StreamingHttpResponse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.models import TenantUsageDay
from queueapi.rest import pagination
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.exporting import batches, csv_lines, streamed
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible
from queueapi.selectors.usage import names_of, usage_days, usage_totals

_DAY: Final = "%Y-%m-%d"
_NAME: Final = "Null where the tenant is no more."
_CSV: Final = OpenApiExample(
    "Two days",
    "tenant,tenant_name,day,sent,sent_bytes,handled,handled_bytes,errors,dead_letters,stored_bytes\r\n"
    "784f394c-42b6-435a-983c-b7beff2784f9,Greenhouse Ltd,2026-03-14,120,24000,118,23600,3,1,1048576\r\n",
    media_type="text/csv",
    response_only=True,
)


class UsageFilter(filters.FilterSet):
    tenant = filters.UUIDFilter("tenant_id", label="Whose.")
    to = filters.DateFilter("day", "lt", label="Before this day.", input_formats=[_DAY])

    class Meta:
        model = TenantUsageDay
        fields: list[str] = []

    @classmethod
    def get_filters(cls) -> dict[str, Any]:
        # A filter cannot be declared by this name: it is a word of Python's.
        begin = filters.DateFilter("day", "gte", label="This day or later, by UTC.", input_formats=[_DAY])
        return {**super().get_filters(), "from": begin}


class UsageDaySerializer(serializers.ModelSerializer[TenantUsageDay]):
    """What one tenant used on one day, by UTC."""

    tenant = serializers.UUIDField(source="tenant_id")
    tenant_name = serializers.CharField(allow_null=True, help_text=_NAME)

    class Meta:
        model = TenantUsageDay
        fields = [
            "tenant", "tenant_name", "day", "sent", "sent_bytes", "handled", "handled_bytes", "errors", "dead_letters",
            "stored_bytes",
        ]  # fmt: skip
        extra_kwargs = {
            "stored_bytes": {
                "help_text": "What its own queues held when that was last looked at; null where it has none."
            }
        }


class UsageTotalSerializer(serializers.Serializer[Any]):
    tenant = serializers.UUIDField(source="tenant_id")
    tenant_name = serializers.SerializerMethodField(help_text=_NAME)
    days = serializers.IntegerField(help_text="On how many it sent something, or something of it was handled.")
    sent = serializers.IntegerField(source="all_sent")
    sent_bytes = serializers.IntegerField(source="all_sent_bytes")
    handled = serializers.IntegerField(source="all_handled")
    handled_bytes = serializers.IntegerField(source="all_handled_bytes")
    errors = serializers.IntegerField(source="all_errors")  # type: ignore[assignment] # declared fields are kept elsewhere
    dead_letters = serializers.IntegerField(source="all_dead_letters")
    most_stored_bytes = serializers.IntegerField(
        allow_null=True, help_text="The most that its own queues held on one of the days; null where it has none."
    )
    stored_byte_days = serializers.IntegerField(
        allow_null=True, help_text="What its own queues held on each of the days, added up."
    )

    def get_tenant_name(self, total: Any) -> str | None:
        names: Mapping[UUID, str] = self.context["names"]
        return names.get(total.tenant_id)


class UsageViewSet(Conventional, OnlyVisible, mixins.ListModelMixin, viewsets.GenericViewSet[TenantUsageDay]):
    """By tenant and day, newest first. A tenant's people see what their own used."""

    access = Access(Resource.USAGE)
    summaries = {
        "list": "List what tenants used by day",
    }
    queryset = usage_days()
    serializer_class = UsageDaySerializer
    pagination_class = pagination.NewestDayFirst
    filterset_class = UsageFilter

    @extend_schema(
        summary="What tenants used as CSV",
        responses={(200, "text/csv"): OpenApiTypes.STR},
        examples=[_CSV],
        filters=True,
    )
    @action(detail=False, url_path=r"export\.csv", pagination_class=None)
    def export_csv(self, request: Request) -> StreamingHttpResponse:
        """All days that the filter leaves, newest first."""
        days = self.filter_queryset(self.get_queryset()).order_by(*pagination.NewestDayFirst.ordering)
        shown = (self.get_serializer(batch, many=True).data for batch in batches(days))
        return streamed(request, csv_lines(shown), "text/csv; charset=utf-8", "usage.csv")


class UsageTotalViewSet(Conventional, OnlyVisible, mixins.ListModelMixin, viewsets.GenericViewSet[TenantUsageDay]):
    """By tenant, all days that the filter leaves together."""

    access = Access(Resource.USAGE)
    summaries = {
        "list": "List what tenants used in all",
    }
    queryset = usage_totals(TenantUsageDay.objects.all())
    serializer_class = UsageTotalSerializer
    pagination_class = pagination.ByTenantId
    filterset_class = UsageFilter

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ARG002
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        names = names_of([total.tenant_id for total in page])
        told = UsageTotalSerializer(page, many=True, context={"names": names})
        return self.get_paginated_response(told.data)
