"""What a consumption has, for as long as it lasts."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.counting import Counter, Stopwatch
from queuecore.consuming.giving_up import GivingUp
from queuecore.consuming.holds import Holds
from queuecore.consuming.marks import MarkStore
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.pool import Pool
from queuecore.consuming.settling import Settling
from queuecore.consuming.stalls import StallDetector
from queuecore.consuming.states import States
from queuecore.errors import StaleEpoch
from queuecore.metrics.recorder import Recording


@dataclass(slots=True)
class Surroundings:
    """What a stay shares with those before and after it."""

    plan: Callable[[], ConsumptionPlan]
    holds: Callable[[], Holds]
    pool: Pool
    settling: Settling
    giving_up: GivingUp
    stalls: StallDetector
    counter: Counter
    stopwatch: Stopwatch
    marks: MarkStore
    # Set when an attempt is over, or something else is to be looked at.
    changed: threading.Event
    progressed: Callable[[], None]
    # A partition was given under an epoch that is too old. Raises that where none is left to go on with.
    found_stale: Callable[[StaleEpoch], None]
    recording: Recording
    # Where the queue's handlers remember something.
    states: States | None = None
    clock: Clock = SYSTEM_CLOCK
