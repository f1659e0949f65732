"""Setting a group's offsets: what it would mean first, then the change itself.

plan = plan_reset(admin, "orders-consumer", partitions, AtTime(midnight_ms))
for move in plan.moves:
    print(move.place, move.committed, move.offset, move.skipped, move.repeated)
apply_reset(admin, plan)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from queuecore.errors import GroupActive, OffsetOutOfRange, ProviderUnavailable
from queuecore.groups.lag import Standing, read_standings
from queuecore.providers.base import QueueAdmin
from queuecore.topics import ProviderPartition


@dataclass(frozen=True, slots=True)
class Earliest:
    """The oldest record there is."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end, or so many offsets before it."""

    before: int = 0


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record that is not older; the end where there is none."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class AtOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class Shifted:
    """So many offsets after what is committed, or before it where negative."""

    by: int


Target = Earliest | Latest | AtTime | AtOffset | Shifted

_TOKEN_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's part of a plan: from `standing` to `offset`. `asked` is where the target lies; outside of what is
    stored, the nearest offset there is counts instead."""

    place: ProviderPartition
    standing: Standing
    asked: int

    @property
    def offset(self) -> int:
        return _within(self.asked, self.standing)

    @property
    def is_clamped(self) -> bool:
        return self.offset != self.asked

    @property
    def changes(self) -> bool:
        return self.offset != self.standing.committed

    @property
    def skipped(self) -> int | None:
        """How many messages are never delivered to the group, at most: some offsets may hold none. Unknown where it has
        committed nothing, for where it would begin is its consumers' setting."""
        return None if self._now is None else max(0, self.offset - self._now)

    @property
    def repeated(self) -> int | None:
        """How many messages are delivered to the group again; likewise."""
        return None if self._now is None else max(0, self._now - self.offset)

    @property
    def _now(self) -> int | None:
        return None if self.standing.committed is None else _within(self.standing.committed, self.standing)


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """What a reset would do, as of when it was planned. Partitions are in order."""

    group: str
    target: Target
    moves: tuple[Move, ...]

    @property
    def token(self) -> str:
        """The same for plans that mean the same: one group and target, from the same committed offsets to the same new
        ones. The end moves on with every message, so for `Latest` it is no part of it."""
        moving = isinstance(self.target, Latest)
        moves = [(*one.place, one.standing.committed, None if moving else one.offset) for one in self.moves]
        return sha256(repr((self.group, self.target, moves)).encode()).hexdigest()[:_TOKEN_DIGITS]


def plan_reset(admin: QueueAdmin, group: str, partitions: Iterable[ProviderPartition], target: Target) -> ResetPlan:
    """Changes nothing. OffsetOutOfRange for a shift where nothing is committed, UnknownTopic for a partition there is
    not, ProviderUnavailable for one that nobody leads."""
    wanted = sorted(set(partitions))
    standings = read_standings(admin, {group: wanted})[group]
    if unknown := [place for place in wanted if place not in standings]:
        # Tells what is wrong with them, unless it is over.
        admin.end_offsets(unknown)
        raise ProviderUnavailable(f"nobody could tell where {unknown[0]} begins and ends; plan anew")
    asked = _asked(admin, group, standings, target)
    return ResetPlan(group, target, tuple(Move(place, one, asked[place]) for place, one in standings.items()))


def apply_reset(admin: QueueAdmin, plan: ResetPlan) -> None:
    """Do it. GroupActive, with nothing changed, when a member of the group reads, or when the group has committed since
    the plan was made."""
    places = [move.place for move in plan.moves]
    committed = admin.committed_offsets({plan.group: places})[plan.group]
    for move in plan.moves:
        if (now := committed.get(move.place)) != move.standing.committed:
            raise GroupActive(
                f"group {plan.group} had committed {_shown(move.standing.committed)} in {move.place} when the reset "
                f"was planned, and {_shown(now)} now; stop its consumers, then plan anew",
                group=plan.group,
            )
    admin.alter_group_offsets(plan.group, {move.place: move.offset for move in plan.moves if move.changes})


def _asked(
    admin: QueueAdmin, group: str, standings: Mapping[ProviderPartition, Standing], target: Target
) -> Mapping[ProviderPartition, int]:
    match target:
        case Earliest():
            return {place: one.beginning for place, one in standings.items()}
        case Latest(before):
            return {place: one.end - before for place, one in standings.items()}
        case AtOffset(offset):
            return dict.fromkeys(standings, offset)
        case Shifted(by):
            return {place: _committed(group, place, one) + by for place, one in standings.items()}
        case AtTime(time_ms):
            found = admin.offsets_for_times(dict.fromkeys(standings, time_ms))
            # The end may have moved on meanwhile.
            return {place: min(found[place], one.end) for place, one in standings.items()}


def _committed(group: str, place: ProviderPartition, standing: Standing) -> int:
    if standing.committed is None:
        raise OffsetOutOfRange(
            f"group {group} has committed nothing in {place}, so there is nothing to shift from; name an offset or a "
            "time, or leave the partition out"
        )
    return standing.committed


def _within(offset: int, standing: Standing) -> int:
    return min(max(offset, standing.beginning), standing.end)


def _shown(committed: int | None) -> str:
    return "nothing" if committed is None else str(committed)
