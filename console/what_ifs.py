"""What a rebalance would do, as pages show it: drawn, listed, and how even things are before and after."""

from dataclasses import asdict
from typing import Any, Final

from console.balances import balance_tables
from console.move_flows import draw_moves
from queuecore.cluster.what_if import WhatIf

_MOVES_SHOWN: Final = 100


def shown(seen: WhatIf) -> dict[str, Any]:
    """What `rebalances/what_if.html` has."""
    plan = seen.plan
    return {
        "seen": seen,
        "moves": plan.moves[:_MOVES_SHOWN],
        "flow": draw_moves(plan.moves, plan.placed),
        "tables": balance_tables({"before": asdict(plan.before), "after": asdict(plan.after)}),
    }
