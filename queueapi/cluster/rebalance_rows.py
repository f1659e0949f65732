"""A rebalance as a row, and back."""

from datetime import UTC, datetime
from uuid import UUID

from queueapi.cluster import models
from queuecore.cluster.rebalances import Cause, Rebalance, RebalanceState
from queuecore.cluster.services import Move


def from_row(row: models.Rebalance) -> Rebalance:
    pauses = None if row.pause_ms is None or row.longest_pause_ms is None else (row.pause_ms, row.longest_pause_ms)
    return Rebalance(
        row.reason,
        cause=Cause(row.cause),
        requested_by=row.requested_by,
        id=row.id,
        state=RebalanceState(row.state),
        created_ms=_to_ms(row.created_at) or 0,
        started_ms=_to_ms(row.started_at),
        finished_ms=_to_ms(row.finished_at),
        tries=row.tries,
        moves=row.moves,
        placements=row.placements,
        total=row.total,
        done=row.done,
        is_unwanted=row.is_unwanted,
        error=row.error,
        balance=row.balance,
        listed=tuple(Move(*one) for one in row.listed),
        pauses_ms=pauses,
    )


def save_row(rebalance: Rebalance) -> models.Rebalance:
    """New, or as it is now. That somebody wants its end is theirs to say alone."""
    pause_ms, longest_ms = rebalance.pauses_ms or (None, None)
    values = {
        "state": rebalance.state.value,
        "cause": rebalance.cause.value,
        "reason": rebalance.reason,
        "requested_by": rebalance.requested_by,
        "created_at": _to_time(rebalance.created_ms),
        "started_at": _to_time(rebalance.started_ms),
        "finished_at": _to_time(rebalance.finished_ms),
        "tries": rebalance.tries,
        "moves": rebalance.moves,
        "placements": rebalance.placements,
        "total": rebalance.total,
        "done": rebalance.done,
        "error": rebalance.error,
        "balance": rebalance.balance,
        "listed": [[move.partition, move.source, move.target] for move in rebalance.listed],
        "pause_ms": pause_ms,
        "longest_pause_ms": longest_ms,
    }
    row, _ = models.Rebalance.objects.update_or_create(id=rebalance.id, defaults=values)
    return row


def find_row(rebalance_id: UUID) -> models.Rebalance | None:
    return models.Rebalance.objects.filter(id=rebalance_id).first()


def _to_ms(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def _to_time(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
