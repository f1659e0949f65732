"""A change of who consumes what, from its plan to its end."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from uuid import UUID, uuid4

from queuecore.cluster.services import Move

# Of a large rebalance as many moves are listed; all are counted.
MAX_LISTED_MOVES: Final = 1000


class RebalanceState(StrEnum):
    PLANNED = "planned"
    RUNNING = "running"
    RETRYING = "retrying"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL: Final = (RebalanceState.DONE, RebalanceState.FAILED, RebalanceState.CANCELLED)


class Cause(StrEnum):
    """What it was begun for.

    MEMBERSHIP  service instances came or went, or are otherwise than before
    PARTITIONS  there are other partitions than before
    REQUEST     somebody asked for it
    """

    MEMBERSHIP = "membership"
    PARTITIONS = "partitions"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One at a time is under way; others wait as PLANNED.

    reason      why, in words
    moves       how many partitions its last plan has change hands; `placements`: how many had no owner
    total       how many it has to bring where they should be; `done`: how many are there
    tries       how often it was planned
    is_unwanted somebody asked for its end
    error       why it failed, or what it met on the way
    balance     how even the load is before and after
    listed      the first of its moves
    pauses_ms   how long those partitions that have moved were consumed by nobody: the middle one and the longest
    """

    reason: str
    cause: Cause = Cause.REQUEST
    requested_by: str = ""
    id: UUID = field(default_factory=uuid4)
    state: RebalanceState = RebalanceState.PLANNED
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None
    tries: int = 0
    moves: int = 0
    placements: int = 0
    total: int = 0
    done: int = 0
    is_unwanted: bool = False
    error: str = ""
    balance: dict[str, Any] = field(default_factory=dict)
    listed: tuple[Move, ...] = ()
    pauses_ms: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"rebalance {self.id} ({self.reason})"
