"""Which letters may be sent again, and why others may not."""

from typing import Final

from django.db.models import Q, QuerySet

from queueapi.choices import CONSUMED_QUEUE_STATES, LetterState, QueueState
from queueapi.models import DeadLetter, Queue
from queueapi.replaying import ReplaySettings
from queueapi.selectors.letter_filter import Selection, selected_letters
from queuecore.deadletter.foreign import Origin

# Those of others have no place of ours that they would go back to.
OWN: Final = Q(origin=Origin.SWITCHYARD)


def ready_letters(selection: Selection, target: Queue | None, settings: ReplaySettings) -> QuerySet[DeadLetter]:
    """The letters that may be sent."""
    refused = Q()
    for condition, _reason in why_refused(target, settings):
        refused |= condition
    return selected_letters(selection).filter(~refused, state=LetterState.OPEN)


def why_refused(target: Queue | None, settings: ReplaySettings) -> list[tuple[Q, str]]:
    """Why open letters are refused: by what they are, and by where they would go."""
    conditions = why_refused_themselves(settings)
    deleting = "would go to a queue that is being deleted; name another target, or discard them"
    if target is None:
        conditions.append((Q(queue__in=queues_deleted()), deleting))
    elif target.state not in CONSUMED_QUEUE_STATES:
        conditions.append((Q(pk__isnull=False), f"would go to {target}, which is {target.state}; name another target"))
    if target is not None and target.only_tenant_id is not None:
        others = Q(tenant__isnull=True) | ~Q(tenant=target.only_tenant_id)
        conditions.append((others, f"are not of tenant {target.only_tenant_id}, whose messages {target} takes alone"))
    return conditions


def queues_deleted() -> QuerySet[Queue]:
    """Those that are on their way out."""
    return Queue.objects.filter(state=QueueState.DELETING)


def why_refused_themselves(settings: ReplaySettings) -> list[tuple[Q, str]]:
    """Few letters are: indexes have those alone, and are found by the same conditions."""
    most = settings.max_replays
    replayed = Q(replay_count__gt=0, replay_count__gte=most)
    lost = ~Q(payload_missing="") & Q(is_edited=False)
    return [
        (replayed, f"were replayed {most} times or more; mend their cause, or allow more replays"),
        (lost, "have lost their payload; edit them to give them another"),
    ]
