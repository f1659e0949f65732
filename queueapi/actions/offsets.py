"""Setting a consumer group to another place."""

from typing import Any

from django.db import transaction

from queueapi import runtime
from queueapi.actions.actor import Actor, audit
from queuecore.errors import GroupActive
from queuecore.groups.resetting import Move, ResetPlan, apply_reset
from queuecore.providers.base import QueueAdmin

# Of who reads, in an error.
_NAMED = 5


def reset_offsets(actor: Actor, plan: ResetPlan) -> None:
    """Do what was planned. GroupActive, with nothing changed, while a member of the group holds one of the partitions,
    or when the group has committed since the plan was made."""
    admin = runtime.provider().admin()
    check_idle(admin, plan)
    moves = [move for move in plan.moves if move.changes]
    with transaction.atomic():
        if moves:
            audit(
                actor, "reset_offsets", "group", plan.group[:100],
                before=_told(plan, [move.standing.committed for move in moves], moves),
                after=_told(plan, [move.offset for move in moves], moves),
            )  # fmt: skip
        # Last, and within: whether it is refused is known at once, and what was refused is no change to be audited.
        apply_reset(admin, plan)


def check_idle(admin: QueueAdmin, plan: ResetPlan) -> None:
    """GroupActive names those that read."""
    places = {move.place for move in plan.moves}
    group = admin.groups().get(plan.group)
    readers = sorted(member for member, held in group.members.items() if held & places) if group else []
    if readers:
        more = f" and {len(readers) - _NAMED} more" if len(readers) > _NAMED else ""
        raise GroupActive(
            f"group {plan.group} has members that read these partitions: {', '.join(readers[:_NAMED])}{more}; stop its "
            "consumers first. A pause is not enough: drain or stop the services that hold the partitions",
            group=plan.group,
        )


def _told(plan: ResetPlan, offsets: list[int | None], moves: list[Move]) -> dict[str, Any]:
    return {
        "group": plan.group,
        "offsets": {str(move.place): offset for move, offset in zip(moves, offsets, strict=True)},
    }
