"""What a path may hold."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import Http404
from rest_framework.request import Request
from rest_framework.views import APIView

from queuecore.topics import SYSTEM_TENANT


class FoundByText(APIView):
    """For resources whose path holds any text. NUL is in no text of PostgreSQL's, which cannot even be asked."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if any("\0" in value for value in kwargs.values()):
            raise Http404


def queue_lookup(named: str) -> Q:
    """A queue by its id, or by the name of a system queue whatever its case."""
    try:
        return Q(id=UUID(named))
    except ValueError:
        return Q(name__iexact=named, tenant_id=SYSTEM_TENANT)
