"""Publishing by the short way: what nearly every request to publish is, and nothing else.

A program's token, messages as anybody would write them, a queue that takes them. All that is unusual or wrong is left
to the long way before anything is sent or counted, so that each convention and each refusal is told in one place. What
both do, they do by the same actions (ADR 25).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
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

# As people of a tenant name them.
_Queues = dict[tuple[str, UUID | None], Queue | None]


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
    [answer] = answer_together([asked])
    return answer


def answer_together(many: Sequence[Asked]) -> list[HttpResponse | None]:
    """As `answer_shortly` for each of them. What one queue gets by several is sent and waited for together, but for
    batches, which are refused as a whole."""
    queues: _Queues = {}
    checked = [_check(asked, queues) for asked in many]
    answers: list[HttpResponse | None] = [None] * len(many)
    stored_as: defaultdict[object, list[_Request]] = defaultdict(list)
    for index, (asked, one) in enumerate(zip(many, checked, strict=True)):
        if one is not None:
            request = _Request(index, asked, one)
            answers[index] = refusal = request.refusal
            if refusal is None:
                stored_as[index if asked.is_batch else one.queue.pk].append(request)
    for requests in stored_as.values():
        answers_of = _publish(requests)
        for request, answer in zip(requests, answers_of, strict=True):
            answers[request.index] = answer
    return answers


class _Request:
    """One that is plainly in order, and is counted."""

    def __init__(self, index: int, asked: Asked, checked: _Checked) -> None:
        self.index = index
        self.is_batch = asked.is_batch
        self.queue, self.messages = checked.queue, checked.messages
        self.id = usable_request_id(asked.request_id)
        self._rate = counter.count(principal_of_token(checked.token), config().rest.requests_per_minute)

    @property
    def refusal(self) -> HttpResponse | None:
        """Why it is not looked at any further."""
        if not self._rate.is_exceeded:
            return None
        with answering(self.id):
            return self._with_headers(problem_of(RateLimited(self._rate.limit, self._rate.reset_s)))

    def refused(self, error: Exception) -> HttpResponse:
        with answering(self.id):
            return self._with_headers(problem_response(error, {}))

    def answer(self, outcomes: list[PublishedMessage | QueueError]) -> HttpResponse:
        """What became of its messages."""
        if self.is_batch:
            failed = sum(isinstance(outcome, QueueError) for outcome in outcomes)
            return self._with_headers(_json(207 if failed else 201, batch_shown(outcomes, failed)))
        [outcome] = outcomes
        if isinstance(outcome, QueueError):
            return self.refused(outcome)
        return self._with_headers(_json(201, outcome_shown(outcome)))

    def _with_headers(self, response: HttpResponse) -> HttpResponse:
        for name, value in {REQUEST_ID: self.id, **self._rate.headers}.items():
            response.headers[name] = value
        return response


def _check(asked: Asked, queues: _Queues) -> _Checked | None:
    """Whether it is plainly in order. What was found for one is found for the others."""
    token = TOKENS.find(asked.token)
    principal = None if token is None else principal_of(token.created_by, token)
    if token is None or principal is None or not principal.may(WRITE, Resource.MESSAGES):
        return None
    read = read_many if asked.is_batch else read_one
    messages = read(asked.body, config().rest.max_json_depth, principal.tenant_id)
    tenants = {message.tenant for message in messages or ()}
    if not messages or not _are_known(principal, tenants):
        return None
    named = (asked.queue, principal.tenant_id)
    if named not in queues:
        queues[named] = find_active_queue(*named)
    queue = queues[named]
    if queue is None or not can_be_published(queue, tenants, messages):
        return None
    return _Checked(token, queue, messages)


def _are_known(principal: Principal, tenants: set[UUID]) -> bool:
    """Whether who asks may know of all these tenants."""
    if principal.tenant_id is not None:
        return tenants == {principal.tenant_id}
    return all(admission().knows(tenant) for tenant in tenants)


def _publish(requests: Sequence[_Request]) -> list[HttpResponse]:
    """What these have for one queue. Each is answered as if it were alone; in the log the first stands for all."""
    messages = [message for request in requests for message in request.messages]
    try:
        with answering(requests[0].id):
            outcomes = iter(publish_batch(requests[0].queue, messages))
    except Exception as error:  # noqa: BLE001, RUF100 - the same handler as in views tells all of them apart
        return [request.refused(error) for request in requests]
    return [request.answer(list(islice(outcomes, len(request.messages)))) for request in requests]


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
