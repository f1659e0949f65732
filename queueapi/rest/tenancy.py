"""What of a resource a request may know of."""

from collections.abc import Mapping
from typing import Any, cast

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty
from rest_framework.generics import GenericAPIView
from rest_framework.serializers import PrimaryKeyRelatedField
from rest_framework.views import APIView

from queueapi.access.tenancy import visible
from queueapi.rest.permissions import requester_of


def seen_by(view: APIView, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Of these rows those that the view's request may know of. Nobody asks while the documentation is made."""
    return rows if getattr(view, "swagger_fake_view", False) else visible(requester_of(view.request), rows)


def is_told_details(context: Mapping[str, Any]) -> bool:
    """Whether a serializer with this context answers who runs the system: ids of services and texts of errors are not
    for a tenant's people."""
    request = context.get("request")
    return request is not None and requester_of(request).tenant_id is None


class OnlyVisible(GenericAPIView[Any]):
    """For views whose rows are their `queryset`, of which each request sees its own."""

    def get_queryset(self) -> QuerySet[Any]:
        return seen_by(self, super().get_queryset())


class VisibleField(PrimaryKeyRelatedField[Any]):
    """Names a row that the request may know of. What it may not is refused like what does not exist."""

    def run_validation(self, data: Any = empty) -> Any:
        """An empty text names nothing: DRF would take it for null."""
        if data == "":
            raise ValidationError("an empty text is no id; send one, or leave it out")
        return super().run_validation(data)

    def get_queryset(self) -> QuerySet[Any]:
        rows = cast(QuerySet[Any], super().get_queryset())
        request = self.context.get("request")
        return rows.none() if request is None else visible(requester_of(request), rows)
