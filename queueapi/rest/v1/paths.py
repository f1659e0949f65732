"""What a path may hold."""

from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.views import APIView

from queueapi.access.tenancy import visible
from queueapi.models import Queue, Tenant
from queueapi.rest.permissions import requester_of
from queuecore.topics import SYSTEM_TENANT

AS_TENANT: Final = OpenApiParameter(
    "tenant",
    str,
    description="By its id or name: the queue is looked up as this tenant sees it, its own before the system's. Left "
    "out: as the caller's tenant does, or the system. To a tenant's people there is no other tenant.",
)


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


def asked_tenant(request: Request) -> UUID | None:
    """The one that `tenant=` means, by its id or by its name whatever its case; None where it was left out. Http404
    where there is none such that the request may know of."""
    if not (named := request.query_params.get(AS_TENANT.name, "")):
        return None
    tenants = visible(requester_of(request), Tenant.objects.all())
    try:
        found = tenants.filter(id=UUID(named))
    except ValueError:
        found = tenants.none() if "\0" in named else tenants.filter(name__iexact=named)
    tenant_id = found.values_list("id", flat=True).first()
    if tenant_id is None:
        raise Http404
    return tenant_id


def queue_of_path(request: Request, queues: QuerySet[Queue], named: str, *, filters: bool = False) -> Queue:
    """The one that the request means, as the tenant sees it that `tenant=` names, else who asks. Http404. `filters`:
    there `tenant=` chooses messages besides, and these may be of a tenant that is no more."""
    try:
        asked = asked_tenant(request)
    except Http404:
        if not filters:
            raise
        asked = None
    if asked is not None and not filters:
        queues = queues.filter(tenant_id__in=(asked, SYSTEM_TENANT))
    queue = find_queue(queues, named, asked or requester_of(request).tenant_id)
    if queue is None:
        raise Http404
    return queue
