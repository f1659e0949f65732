"""Isolation: a tenant asks for queues of its own, somebody else decides, an operation carries it out; and back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.actions.isolated_queues import Asked, check_asked, store_isolated_queues
from queueapi.actions.operations import start_operation
from queueapi.choices import CARRIED_OUT_ISOLATION_STATES, IsolationState, QueueState
from queueapi.errors import NotAllowed, NotChangeable
from queueapi.models import IsolationComment, IsolationRequest, Operation, Queue, Tenant
from queueapi.selectors.isolation import isolated_queues, isolation_of
from queueapi.selectors.queue_operations import ISOLATE, RETURN, is_being_resized
from queueapi.selectors.queue_plans import undecided_letters

# Topics, routing, the cut, what is before it, and consumers.
ISOLATION_STEPS: Final = 5
# A hold, routing, what is left, its end; and for each queue consumers, topics, the row.
RETURN_STEPS: Final = 4

_DIRECT: Final = "by an administrator's own word"


def request_isolation(actor: Actor, tenant: Tenant, queues: Sequence[Asked], reason: str) -> IsolationRequest:
    """Ask for queues of the tenant's own. Where its profile says so, nobody has to approve. InvalidInput,
    NotChangeable."""
    with transaction.atomic():
        request = _record(actor, tenant, queues, reason)
        profile = request.tenant.profile
        if profile.approves_isolation:
            _carry_out(actor, request, None, "", f"profile {profile.name} approves it")
    return request


def isolate_tenant(actor: Actor, tenant: Tenant, queues: Sequence[Asked], reason: str) -> IsolationRequest:
    """The same at once, for who may create queues anyway."""
    with transaction.atomic():
        request = _record(actor, tenant, queues, reason)
        _carry_out(actor, request, None, actor.name, _DIRECT)
    return request


def change_request(
    actor: Actor, request: IsolationRequest, *, queues: Sequence[Asked] | None = None, reason: str | None = None
) -> IsolationRequest:
    """While nobody has decided on it. InvalidInput, NotChangeable."""
    with transaction.atomic():
        request = _locked(request, IsolationState.REQUESTED)
        before = _told(request)
        request.queues = request.queues if queues is None else [dict(one) for one in queues]
        request.reason = reason or request.reason
        check_asked(request.tenant, request.queues)
        if (after := _told(request)) != before:
            _save(request, "queues", "reason")
            _audit(actor, "change", request, before=before, after=after)
    return request


def comment_on_request(actor: Actor, request: IsolationRequest, text: str) -> IsolationRequest:
    """For whoever sees it, whatever became of it."""
    with transaction.atomic():
        request = _locked(request)
        IsolationComment.objects.create(request=request, author_name=actor.name, text=text)
        _save(request)
        _audit(actor, "comment", request, after={"text": text})
    return request


def approve_request(
    actor: Actor, request: IsolationRequest, comment: str = "", *, version: int | None = None
) -> IsolationRequest:
    """Have it carried out. NotAllowed for who asked for it; NotChangeable where it is decided on, or is not any more as
    it was in the `version` that they saw; InvalidInput where the tenant cannot have it any more as it was asked for."""
    with transaction.atomic():
        request = _locked(request, IsolationState.REQUESTED)
        if version not in (None, request.version):
            raise NotChangeable("somebody has changed it or commented on it since you looked; look again, then decide")
        if actor.user is not None and _is_own(actor, request):
            raise NotAllowed("nobody approves what they have asked for themselves; have another administrator do it")
        _carry_out(actor, request, actor.user, actor.name, comment)
    return request


def refuse_request(actor: Actor, request: IsolationRequest, comment: str) -> IsolationRequest:
    """Decide against it. NotChangeable where it is decided on."""
    with transaction.atomic():
        request = _locked(request, IsolationState.REQUESTED)
        _refuse(actor, "refuse", request, comment)
    return request


def withdraw_request(actor: Actor, request: IsolationRequest) -> IsolationRequest:
    """Take it back. NotChangeable where somebody else has asked for it, or it is decided on."""
    with transaction.atomic():
        request = _locked(request, IsolationState.REQUESTED)
        if not _is_own(actor, request):
            raise NotChangeable(f"{request.requested_by_name} asked for it, and can take it back; others refuse it")
        _refuse(actor, "withdraw", request, "withdrawn by who asked for it")
    return request


def retry_request(actor: Actor, request: IsolationRequest) -> IsolationRequest:
    """Carry out what has failed, or what nobody carries out any more, from where that was. NotChangeable where it is
    under way or over; InvalidInput as for approval."""
    with transaction.atomic():
        request = _locked(request, IsolationState.FAILED, *CARRIED_OUT_ISOLATION_STATES)
        before = request.operation
        if before is not None and not before.state_choice.is_final:
            raise NotChangeable(f"operation {before.pk} carries it out; wait for its end")
        there = _still_its(request)
        # Not why it had failed: a tenant's people read this.
        _audit(actor, "retry", request, before={"state": request.state})
        if before is not None and before.kind == RETURN:
            discards = bool(before.params.get("discard_letters"))
            _start(actor, request, RETURN, IsolationState.RETIRING, _return_steps(request), discard_letters=discards)
        elif not there:
            request.cut = {}
            _save(request, "cut")
            _begin(actor, request)
        else:
            is_routed = any(queue.state == QueueState.HANDING_OVER for queue in there)
            state = IsolationState.HANDING_OVER if is_routed else IsolationState.APPROVED
            _start(actor, request, ISOLATE, state, ISOLATION_STEPS)
    return request


def return_to_shared(actor: Actor, request: IsolationRequest, *, discard_letters: bool = False) -> IsolationRequest:
    """Let the tenant's messages go to the shared queues again, behind those that its own ones still have, and remove
    these. NotChangeable says what stands in the way."""
    with transaction.atomic():
        request = _locked(request, IsolationState.ACTIVE)
        list(Queue.objects.select_for_update().filter(pk__in=[queue.pk for queue in isolated_queues(request)]))
        there = isolated_queues(request)
        if not there or any(queue.state != QueueState.ACTIVE for queue in there):
            raise NotChangeable("its queues are not all active; wait until what is done to them has ended")
        if resized := [queue.name for queue in there if is_being_resized(queue)]:
            raise NotChangeable(f"{', '.join(resized)} is just being resized; wait for the end of that")
        if ending := sorted(other.name for queue in there for other in queue.predecessors.all()):
            raise NotChangeable(f"{', '.join(ending)} is drained or moved to its queues; wait for the end of that")
        letters = sum(map(undecided_letters, there))
        if letters and not discard_letters:
            raise NotChangeable(
                f"{letters:,} dead letters of its queues are open or being replayed; replay or discard them, or let "
                "them be discarded with the queues"
            )
        _audit(actor, "return", request, after={"queues": [queue.name for queue in there]})
        _start(actor, request, RETURN, IsolationState.RETIRING, _return_steps(request), discard_letters=discard_letters)
    return request


def _record(actor: Actor, tenant: Tenant, queues: Sequence[Asked], reason: str) -> IsolationRequest:
    tenant = Tenant.objects.select_for_update(of=("self",)).select_related("profile").get(pk=tenant.pk)
    asked = [dict(one) for one in queues]
    check_asked(tenant, asked)
    request = IsolationRequest(
        tenant=tenant, queues=asked, reason=reason, requested_by=actor.user, requested_by_name=actor.name
    )
    with _one_at_a_time(tenant):
        request.save(force_insert=True)
    _audit(actor, "request", request, after=_told(request))
    return request


def _carry_out(actor: Actor, request: IsolationRequest, user: User | None, name: str, why: str) -> None:
    _decide(request, IsolationState.APPROVED, user, name, why)
    _save(request, "state", *_DECISION)
    _audit(actor, "approve", request, after={"decision": why})
    _begin(actor, request)


def _refuse(actor: Actor, action: str, request: IsolationRequest, why: str) -> None:
    _decide(request, IsolationState.REFUSED, actor.user, actor.name, why)
    _save(request, "state", *_DECISION)
    _audit(actor, action, request, after={"decision": why})


def _is_own(actor: Actor, request: IsolationRequest) -> bool:
    """Whether they have asked for it."""
    user_id = None if actor.user is None else actor.user.pk
    return user_id == request.requested_by_id


def _begin(actor: Actor, request: IsolationRequest) -> None:
    operation = _start(actor, request, ISOLATE, IsolationState.APPROVED, ISOLATION_STEPS)
    store_isolated_queues(actor, request, operation)


def _start(
    actor: Actor, request: IsolationRequest, kind: str, state: IsolationState, steps: int, **params: Any
) -> Operation:
    """The operation, of which the request's queues are from now on."""
    what = "Isolate" if kind == ISOLATE else "Return to shared queues:"
    told = {"request": str(request.pk), **params}
    operation = start_operation(
        actor, kind, f"{what} tenant {request.tenant.name}", told, steps, tenant_id=request.tenant_id
    )
    for queue in isolated_queues(request):
        queue.operation = operation
        queue.save(update_fields=["operation"])
    if request.operation is not None:
        # What an earlier one held back is this one's to let go.
        request.operation.holds.update(operation=operation)
    request.operation, request.state, request.error = operation, state, ""
    with _one_at_a_time(request.tenant):
        _save(request, "operation", "state", "error")
    return operation


@contextmanager
def _one_at_a_time(tenant: Tenant) -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise NotChangeable(
            f"another isolation of tenant {tenant.name} is requested or under way; change that, or wait for its end"
        ) from error


def _still_its(request: IsolationRequest) -> list[Queue]:
    """Its queues. NotChangeable where another request has made queues of these names since."""
    there = isolated_queues(request)
    for queue in there:
        isolation = isolation_of(queue)
        if isolation is not None and isolation.pk != request.pk:
            raise NotChangeable(f"request {isolation.pk} has its queues by now; ask anew instead")
    return there


def _return_steps(request: IsolationRequest) -> int:
    return RETURN_STEPS + len(request.queues)


_DECISION: Final = ("decided_by", "decided_by_name", "decided_at", "decision")


def _decide(request: IsolationRequest, state: IsolationState, user: User | None, name: str, why: str) -> None:
    request.state, request.decided_by, request.decided_by_name = state, user, name
    request.decided_at, request.decision = timezone.now(), why


def _locked(request: IsolationRequest, *states: IsolationState) -> IsolationRequest:
    """As it is now, and nobody else changes it. NotChangeable in another state than these."""
    # The tenant first, as whoever deletes it.
    list(Tenant.objects.select_for_update().filter(pk=request.tenant_id).values_list("pk"))
    rows = IsolationRequest.objects.select_for_update(of=("self",)).select_related("tenant__profile", "operation")
    found = rows.get(pk=request.pk)
    if states and found.state not in states:
        wanted = " or ".join(state.label.lower() for state in states)
        raise NotChangeable(f"the request is {found.state_choice.label.lower()}, and only one that is {wanted} can be")
    return found


def _save(request: IsolationRequest, *fields: str) -> None:
    request.version += 1
    request.save(update_fields=[*fields, "version"])


def _audit(actor: Actor, action: str, request: IsolationRequest, **told: Any) -> None:
    audit(actor, action, "isolation_request", request.pk, tenant_id=request.tenant_id, **told)


def _told(request: IsolationRequest) -> dict[str, Any]:
    return {"tenant": str(request.tenant_id), "queues": request.queues, "reason": request.reason}
