"""What comes of cancelling an operation, by its kind."""

from collections.abc import Mapping
from typing import Any, Final

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.replays import REPLAY
from queueapi.models import Operation
from queueapi.selectors.pipeline import BACKFILL
from queueapi.selectors.queue_operations import DELETE, DRAIN, ISOLATE, PROVISION, RESIZE, RETURN
from queueapi.selectors.rebalances import REBALANCE

_OTHERS: Final = "What runs stops at its next step; what is done stays."
_WHAT_COMES: Final[Mapping[str, str]] = {
    BACKFILL: "Days that were made anew stay so; the others keep the figures that they have.",
    DELETE: "The queue takes messages again.",
    DRAIN: "The queue takes messages again.",
    ISOLATE: "Its messages stay in the shared queues; its own queues are removed again, and it can be tried again.",
    PROVISION: "Topics that are there already stay.",
    REBALANCE: "What has not moved stays where it is.",
    REPLAY: "What runs stops at its next step; what was not sent yet stays open.",
    RESIZE: "The queue keeps the partitions that it has.",
    RETURN: "Its messages go on to its own queues, which stay as they were.",
}


def what_comes(operation: Operation) -> str:
    return _WHAT_COMES.get(operation.kind, _OTHERS)


def asked_to_cancel(operation: Operation, why_not: str) -> dict[str, Any]:
    """What the page says that asks for confirmation."""
    is_begun = bool(operation.total) and operation.started_at is not None
    return {
        "verb": "Cancel",
        "thing": operation.summary,
        "headline": f"{operation.done:,} of {operation.total:,} done" if is_begun else "It has not begun",
        "consequence": what_comes(operation),
        "why_not": why_not.removesuffix("."),
        "back_name": "Operation",
        "leave": "Let it go on",
        "button_kind": "danger",
        "need_verb": OPERATE,
        "need_resource": Resource.OPERATIONS,
    }
