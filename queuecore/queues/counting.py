"""What became of a subscription's messages."""

from dataclasses import dataclass

from queuecore.consuming.counting import ConsumptionCounts


@dataclass(frozen=True, slots=True)
class SubscriptionCounts:
    """What became of the messages a subscription got.

    handled        the handler returned, and what it sent is stored
    retried        attempts after a failed one
    dead_lettered  given up, and now in the queue's dead-letter topic
    skipped        replays for another group, passed over
    dropped        given up, and written nowhere but to the log
    """

    handled: int = 0
    retried: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    dropped: int = 0


def subscription_counts(counts: ConsumptionCounts) -> SubscriptionCounts:
    return SubscriptionCounts(counts.handled, counts.retried, counts.dead_lettered, counts.passed_over, counts.dropped)
