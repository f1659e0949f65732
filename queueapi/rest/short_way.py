"""Publishing by the short way: what nearly every request to publish is, and nothing else.

A program's token, messages as anybody would write them, a queue that takes them. All that is unusual or wrong is left
to the long way before anything is sent or counted, so that each convention and each refusal is told in one place. What
both do, they do by the same actions (ADR 25).
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from django.http import HttpResponse

from queueapi.access.principals import Principal, principal_of
from queueapi.access.table import WRITE, Resource
from queueapi.access.tokens import TOKENS
from queueapi.actions.message_batches import OutgoingMessage, can_be_published, publish_batch
from queueapi.actions.messages import PublishedMessage
from queueapi.admission import admission
from queueapi.config import config
from queueapi.models import ApiToken, Queue
from queueapi.request_ids import answering, usable_request_id
from queueapi.rest.conventions.principals import principal_of_token
from queueapi.rest.conventions.rates import counter
from queueapi.rest.conventions.refusals import RateLimited
from queueapi.rest.middleware import REQUEST_ID
from queueapi.rest.problems import problem_of, problem_response
from queueapi.rest.short_bodies import read_many, read_one
from queueapi.selectors.published_queues import find_active_queue
from queuecore.errors import QueueError

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to publish, as it came: the queue as its path names it."""

    queue: str
    is_batch: bool
    token: str
    request_id: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class _Checked:
    token: ApiToken
    queue: Queue
    messages: list[OutgoingMessage]


def answer_shortly(asked: Asked) -> HttpResponse | None:
    """The answer; None where the request has to go the long way, and nothing was done yet."""
    checked = _check(asked)
    if checked is None:
        return None
    request_id = usable_request_id(asked.request_id)
    with answering(request_id):
        rate = counter.count(principal_of_token(checked.token), config().rest.requests_per_minute)
        refused = problem_of(RateLimited(rate.limit, rate.reset_s)) if rate.is_exceeded else None
        response = refused or _publish(asked, checked)
    for name, value in {REQUEST_ID: request_id, **rate.headers}.items():
        response.headers[name] = value
    return response


def _check(asked: Asked) -> _Checked | None:
    token = TOKENS.find(asked.token)
    principal = None if token is None else principal_of(token.created_by, token)
    if token is None or principal is None or not principal.may(WRITE, Resource.MESSAGES):
        return None
    read = read_many if asked.is_batch else read_one
    messages = read(asked.body, config().rest.max_json_depth)
    tenants = {message.tenant for message in messages or ()}
    if not messages or not _are_known(principal, tenants):
        return None
    queue = find_active_queue(asked.queue, principal.tenant_id)
    if queue is None or not can_be_published(queue, tenants, messages):
        return None
    return _Checked(token, queue, messages)


def _are_known(principal: Principal, tenants: set[UUID]) -> bool:
    """Whether who asks may know of all these tenants."""
    if principal.tenant_id is not None:
        return tenants == {principal.tenant_id}
    return all(admission().knows(tenant) for tenant in tenants)


def _publish(asked: Asked, checked: _Checked) -> HttpResponse:
    try:
        outcomes = publish_batch(checked.queue, checked.messages)
        if not asked.is_batch and isinstance(outcomes[0], QueueError):
            raise outcomes[0]
    except Exception as error:  # noqa: BLE001, RUF100 - the same handler as in views tells all of them apart
        return problem_response(error, {})
    if not asked.is_batch:
        return _json(201, outcome_shown(outcomes[0]))
    failed = sum(isinstance(outcome, QueueError) for outcome in outcomes)
    return _json(207 if failed else 201, batch_shown(outcomes, failed))


def batch_shown(outcomes: list[PublishedMessage | QueueError], failed: int) -> dict[str, Any]:
    results = [outcome_shown(outcome) for outcome in outcomes]
    return {"stored": len(outcomes) - failed, "failed": failed, "results": results}


def outcome_shown(outcome: PublishedMessage | QueueError) -> Any:
    """What became of one message, as a batch's answer says it."""
    if isinstance(outcome, PublishedMessage):
        return outcome
    return {"error": {"code": outcome.code, "detail": outcome.message, "retryable": outcome.retryable}}


def _json(status: int, shown: Any) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(shown), status=status, content_type=JSON)
