"""Tenants that are to be no more. What is theirs must be gone first: nothing of it is removed along."""

from collections.abc import Iterator

from django.db import transaction
from django.db.models import ProtectedError

from queueapi import runtime
from queueapi.actions.actor import Actor, audit
from queueapi.actions.tenants import TENANT_FIELDS
from queueapi.admission import admission
from queueapi.change_plans import ChangePlan, plan_of_row, shown
from queueapi.choices import OPEN_ISOLATION_STATES
from queueapi.errors import NotChangeable
from queueapi.models import IsolationRequest, Tenant
from queuecore.errors import UnknownTopic


def plan_tenant_deletion(tenant: Tenant) -> ChangePlan:
    """What `delete_tenant` would do now."""
    why_not = next(_obstacles(tenant), "")
    before = shown(tenant, TENANT_FIELDS)
    return plan_of_row(f"delete tenant {tenant.name}", before, None, _warnings(tenant), why_not)


def delete_tenant(actor: Actor, tenant: Tenant) -> None:
    """NotChangeable while it has queues, dead letters or stored messages of its own, and always for the system's."""
    with transaction.atomic():
        kept = Tenant.objects.select_for_update().get(pk=tenant.pk)
        if why_not := next(_obstacles(kept), ""):
            raise NotChangeable(why_not)
        before = shown(kept, TENANT_FIELDS)
        try:
            kept.delete()
        except ProtectedError as error:
            raise NotChangeable(f"tenant {tenant.name} has just been given something of its own; look again") from error
        audit(actor, "delete", "tenant", tenant.pk, before=before)
        transaction.on_commit(lambda: admission().look_again(tenant.pk))


def _obstacles(tenant: Tenant) -> Iterator[str]:
    if tenant.is_system:
        yield "the system's tenant owns the queues that everyone shares, and is always there"
    if names := list(tenant.queues.values_list("name", flat=True)[:3]):
        count = tenant.queues.count()
        yield f"it has {_many(count, 'queue')} of its own, such as {', '.join(names)}; delete {_them(count)} first"
    if IsolationRequest.objects.filter(tenant=tenant, state__in=OPEN_ISOLATION_STATES).exists():
        yield "its isolation is requested or under way; refuse it, or let it end first"
    if letters := tenant.dead_letters.count():
        yield (
            f"{_many(letters, 'dead letter')} of it {'is' if letters == 1 else 'are'} in the index; replay or discard "
            f"{_them(letters)}, and wait until retention has removed {_them(letters)}"
        )
    if topics := _topics_with_messages(tenant):
        yield (
            f"messages of its own are stored in {_many(len(topics), 'topic')}, such as {topics[0]}; wait until "
            f"retention has removed them, or delete {'that topic' if len(topics) == 1 else 'those topics'}"
        )


def _topics_with_messages(tenant: Tenant) -> list[str]:
    """Of queues that it had: their topics have its id in their names."""
    admin = runtime.provider().admin()
    names = [name for name in admin.topic_names() if f".isolated.{tenant.id}" in name]
    try:
        described = admin.describe_topics(names) if names else {}
    except UnknownTopic:
        # One was removed between the two questions.
        return sorted(names)
    return sorted(
        name
        for name, topic in described.items()
        if any((one.end or 0) > (one.beginning or 0) for one in topic.partitions)
    )


def _warnings(tenant: Tenant) -> Iterator[str]:
    if pauses := tenant.pauses.count():
        yield f"{_many(pauses, 'pause')} of its messages {'is' if pauses == 1 else 'are'} lifted"
    yield "messages of it that wait in shared queues are handled as ever; those that fail become letters of no tenant"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"
