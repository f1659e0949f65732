"""Where an entity's messages go, as it is asked over REST."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request

from queueapi.access.tenancy import visible
from queueapi.models import Queue
from queueapi.rest.permissions import requester_of
from queueapi.rest.v1.paths import asked_tenant, queue_of_path
from queueapi.selectors.resolving import Resolver, consumer_of, read_entity
from queuecore.errors import UnknownQueue
from queuecore.topics import SYSTEM_TENANT

QUEUE: Final = OpenApiParameter("queue", str, required=True, description="Its id, or its name whatever its case.")
ENTITY: Final = OpenApiParameter(
    "entity", str, required=True, description="A UUID in its canonical form is hashed as one, anything else as text."
)


def place_asked_for(request: Request) -> dict[str, Any]:
    """ValidationError for what was left out, Http404 and NotFound for a queue or a tenant that there is not."""
    given = {name: request.query_params.get(name, "") for name in (QUEUE.name, ENTITY.name)}
    if missing := {name: ["say which"] for name, value in given.items() if not value}:
        raise ValidationError(missing)
    tenant_id, name = _queue(request, given[QUEUE.name])
    try:
        entity = read_entity(given[ENTITY.name])
        place = Resolver().place(tenant_id, name, entity)
    except UnicodeEncodeError:
        raise ValidationError({ENTITY.name: ["this is not UTF-8 text"]}) from None
    except UnknownQueue as error:
        raise NotFound(error.message) from error
    consumer = consumer_of(place)
    return {
        "queue": name,
        "tenant": place.tenant_id,
        "entity": given[ENTITY.name],
        "topic": place.topic,
        "partition": place.partition,
        "full_topic_name": place.full_topic_name,
        "hash_function": place.hash_function,
        "hash": place.hash,
        "routing_version": place.version,
        "owner": consumer and consumer.owner,
        "epoch": consumer.epoch if consumer and consumer.owner else None,
    }


def _queue(request: Request, named: str) -> tuple[UUID, str]:
    """Who looks for which name: messages to a queue that is named by its id go where its name leads."""
    seen_as = asked_tenant(request) or requester_of(request).tenant_id
    try:
        UUID(named)
    except ValueError:
        return seen_as or SYSTEM_TENANT, named
    queue = queue_of_path(request, visible(requester_of(request), Queue.objects.all()), named)
    return seen_as or queue.tenant_id, queue.name
