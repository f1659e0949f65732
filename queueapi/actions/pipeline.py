"""What the pipeline leaves behind about itself, and making summaries anew."""

from datetime import date, datetime
from typing import Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.actions.operations import start_operation
from queueapi.errors import AlreadyUnderWay
from queueapi.models import Operation, PipelineStanding
from queueapi.selectors.backfill_plans import UNDER_WAY, backfill_summary, check_days, days_between, is_under_way
from queueapi.selectors.pipeline import BACKFILL
from queuecore.errors import QueueError

LONGEST_ERROR: Final = 2_000


def record_pipeline_success(ran_at: datetime, took_s: float, backlog_events: int) -> None:
    """A run has come to its end, whether there was something new or not."""
    PipelineStanding.objects.update_or_create(
        defaults={
            "ran_at": ran_at,
            "succeeded_at": timezone.now(),
            "took_s": took_s,
            "error": "",
            "code": "",
            "failed_runs": 0,
            "backlog_events": backlog_events,
        }
    )


def record_pipeline_failure(ran_at: datetime, took_s: float, error: QueueError) -> None:
    """A run has ended early. What the backlog is by now, nobody has asked."""
    told = {
        "ran_at": ran_at,
        "took_s": took_s,
        "error": error.message[:LONGEST_ERROR],
        "code": error.code,
        "backlog_events": None,
    }
    with transaction.atomic():
        if not PipelineStanding.objects.update(**told, failed_runs=F("failed_runs") + 1):
            PipelineStanding.objects.create(**told, failed_runs=1)


def adopt_event_store(actor: Actor) -> bool:
    """Whose events summaries are made of is open again, until the next batch is stored; False where it was already."""
    with transaction.atomic():
        standing = PipelineStanding.objects.select_for_update().exclude(store_id="").first()
        if standing is None:
            return False
        audit(actor, "adopt_event_store", "pipeline", standing.id, before={"store_id": standing.store_id})
        standing.store_id = ""
        standing.save(update_fields=["store_id"])
    return True


def start_backfill(actor: Actor, first: date, last: date) -> Operation:
    """Make the summaries of these days anew, from the events that are kept. InvalidInput where those are not;
    AlreadyUnderWay while another one is."""
    check_days(first, last)
    with transaction.atomic():
        # Of two who start one at the same time, the second waits here, and finds the first one's.
        PipelineStanding.objects.select_for_update().first()
        if is_under_way():
            raise AlreadyUnderWay(UNDER_WAY)
        params = {"first": first.isoformat(), "last": last.isoformat()}
        days = len(days_between(first, last))
        return start_operation(actor, BACKFILL, backfill_summary(first, last), params, days)
