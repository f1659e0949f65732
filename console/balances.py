"""How evenly partitions are spread, as tables with bars that can be compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from queuecore.cluster.services import Move

# Of very many services as many are shown, those furthest from their share first.
_MOST_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """`count` is None where the service is not there. Bars are as long as `most` at most."""

    service: str
    count: int | None
    share: float
    most: float


@dataclass(frozen=True, slots=True)
class BalanceTable:
    title: str
    # What is said of a service that is on the other side alone.
    absent: str
    rows: list[BalanceRow]
    left_out: int
    largest_deviation: float


def balance_tables(balance: Mapping[str, Any], *, after: str = "After") -> list[BalanceTable]:
    """Before and after, the same services in both. Empty where nothing was planned yet."""
    if not balance:
        return []
    sides = [("Before", "not there yet", balance["before"]), (after, "has none any more", balance["after"])]
    most = max(
        (max(load["count"], load["share"]) for *_, side in sides for load in side["services"].values()), default=0
    )
    names = sorted({name for *_, side in sides for name in side["services"]}, key=lambda name: _order(balance, name))
    shown = sorted(names[:_MOST_ROWS])
    return [
        BalanceTable(
            title,
            absent,
            [_row(name, side["services"].get(name), most) for name in shown],
            len(names) - len(shown),
            side["largest_deviation"],
        )
        for title, absent, side in sides
    ]


def with_sources(balance: Mapping[str, Any], moves: Sequence[Move]) -> dict[str, Any]:
    """A rebalance's balance is of the services that it counts with. Those that only give, as they leave or are gone,
    had before what they give."""
    if not balance:
        return {}
    before = balance["before"]
    gave = Counter(move.source for move in moves if move.source not in before["services"])
    givers = {name: {"count": count, "share": 0.0} for name, count in gave.items()}
    furthest = max([before["largest_deviation"], *gave.values()])
    return {
        **balance,
        "before": {"services": {**before["services"], **givers}, "largest_deviation": furthest},
    }


def _order(balance: Mapping[str, Any], name: str) -> tuple[float, str]:
    before, after = (balance[side]["services"].get(name, {"count": 0}) for side in ("before", "after"))
    return -abs(after["count"] - before["count"]), name


def _row(name: str, load: Mapping[str, Any] | None, most: float) -> BalanceRow:
    return BalanceRow(name, None, 0, most) if load is None else BalanceRow(name, load["count"], load["share"], most)
