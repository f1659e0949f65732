"""What silences keep quiet, and which of them keep an alert so."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet
from django.utils import timezone

from queueapi.alerting.metrics import SubjectKind
from queueapi.choices import AlertState
from queueapi.models import Alert, AlertRule, Queue, Silence, Tenant
from queueapi.models.queue import full_queue_name


def alerts_matching(
    *, rule: AlertRule | None, tenant: Tenant | None, queue: Queue | None, subject_key: str = ""
) -> QuerySet[Alert]:
    """Those that are open and match all that is named: as `queueapi.alerting.matching` has it."""
    named = {"rule": rule, "tenant": tenant, "queue": queue, "subject_key": subject_key}
    wanted = {name: value for name, value in named.items() if value}
    return Alert.objects.exclude(state=AlertState.RESOLVED).filter(**wanted)


def alerts_silenced(silence: Silence) -> QuerySet[Alert]:
    return alerts_matching(
        rule=silence.rule, tenant=silence.tenant, queue=silence.queue, subject_key=silence.subject_key
    )


def silences_of(alert: Alert) -> QuerySet[Silence]:
    """Those that are about it and held while it was open, as far as nobody has ended them."""
    about = (
        (Q(rule=None) | Q(rule=alert.rule_id))
        & (Q(tenant=None) | Q(tenant=alert.tenant_id))
        & (Q(queue=None) | Q(queue=alert.queue_id))
        & (Q(subject_key="") | Q(subject_key=alert.subject_key))
    )
    over = alert.resolved_at or timezone.now()
    return Silence.objects.filter(about, created_at__lte=over, until__gte=alert.fired_at)


def silences_for_lists() -> QuerySet[Silence]:
    return Silence.objects.select_related("rule", "tenant", "queue__tenant")


def subject_names(keys: Iterable[str]) -> dict[str, str]:
    """What `Subject.key` stands for, as people call it: one query, however many. A queue that is gone keeps its id."""
    parts = {key: key.partition(":") for key in keys if key}
    ids = {identity for kind, _, identity in parts.values() if kind == SubjectKind.QUEUE}
    found = Queue.objects.filter(pk__in=ids).values_list("pk", "name", "tenant_id", "tenant__name") if ids else ()
    queues = {str(pk): full_queue_name(name, tenant, owner) for pk, name, tenant, owner in found}
    return {key: queues.get(identity) or identity or f"the {kind}" for key, (kind, _, identity) in parts.items()}
