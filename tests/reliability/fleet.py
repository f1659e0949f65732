"""Processes that write until they die of kill -9, and others that take their place."""

import os
import random
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from queuecore.testing.waiting import DEADLINE_S
from tests.kill_points import random_point
from tests.processes import Child

# Another one, another order of events: for who wants to try many.
SEED = os.environ.get("TEST_SEED", "7")

Work = Callable[[Connection, Path, int, random.Random], None]
Points = Mapping[str, int]

# Where a writer dies, and within how many calls.
POINTS: Points = {
    "write": 12,
    "sync": 4,
    "fsync": 2,
    "truncate": 1,
    "rename": 2,
    "unlink": 2,
    "sync the folder": 2,
    "index": 6,
    "check the tail": 1,
    "note": 10,
    "set synced": 4,
    "publish": 10,
}


def keep_alive_and_kill(root: Path, works: list[Work], kills: int, points: Points = POINTS) -> list[Any]:
    """Have one process do each of these works until so many have died; everything they told before they died.

    Each is given a number of its own. Most die at a point of their own choosing, the rest are killed here at any
    time.
    """
    chance = random.Random(SEED)
    told: list[Any] = []
    # By their place among the works.
    living: dict[int, Child] = {}
    begun = 0
    with ExitStack() as stack:
        while begun < kills or living:
            for place in set(range(len(works))) - living.keys():
                if begun < kills:
                    living[place] = stack.enter_context(Child(live, root, works[place], begun, chance.random(), points))
                    begun += 1
            for place in _dead(living, chance):
                child = living.pop(place)
                child.kill()
                told += child.hear_all()
                assert child.process.exitcode == -signal.SIGKILL, "it ended by itself"
                child.close()
    return told


def _dead(living: dict[int, Child], chance: random.Random) -> list[int]:
    """Wait until some are dead, or choose one to be killed now."""
    sentinels = {child.process.sentinel: place for place, child in living.items()}
    is_patient = chance.random() < 0.7
    dead = wait(list(sentinels), DEADLINE_S if is_patient else chance.uniform(0, 0.03))
    assert dead or not is_patient, "nobody dies any more"
    return [sentinels[one] for one in dead if isinstance(one, int)] or [chance.choice(list(living))]


def live(parent: Connection, root: Path, work: Work, number: int, seed: float, points: Points) -> None:
    chance = random.Random(seed)
    random_point(chance, points).arm()
    work(parent, root, number, chance)
    os.kill(os.getpid(), signal.SIGKILL)
