"""What a path may hold."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404
from rest_framework.request import Request
from rest_framework.views import APIView

from queueapi.models import Queue
from queuecore.topics import SYSTEM_TENANT


class FoundByText(APIView):
    """For resources whose path holds any text. NUL is in no text of PostgreSQL's, which cannot even be asked."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if any("\0" in value for value in kwargs.values()):
            raise Http404
        super().initial(request, *args, **kwargs)


def queue_lookup(named: str, *owners: UUID) -> Q:
    """A queue by its id, or by the name of one of these tenants' or the system's, whatever its case."""
    try:
        return Q(id=UUID(named))
    except ValueError:
        return Q(name__iexact=named, tenant_id__in=(*owners, SYSTEM_TENANT))


def find_queue(queues: QuerySet[Queue], named: str, tenant_id: UUID | None) -> Queue | None:
    """Of these queues the one that the tenant means by an id or a name: its own, then the system's."""
    found = queues.filter(queue_lookup(named) if tenant_id is None else queue_lookup(named, tenant_id))
    return next(iter(sorted(found, key=lambda queue: queue.tenant_id == SYSTEM_TENANT)), None)
