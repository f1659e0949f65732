"""What a subscription that was waited for in vain was doing."""

import sys
import threading
import traceback
from collections.abc import Iterable

from queuecore import Subscription
from queuecore.consuming.draining import Backlog
from queuecore.providers.base import Provider
from queuecore.topics import ProviderPartition


def drain(
    subscription: Subscription, provider: Provider, places: Iterable[ProviderPartition], patience_s: float
) -> None:
    """As `Subscription.drain`; where it gives up, AssertionError says what it waited for."""
    if not subscription.drain(patience_s):
        raise AssertionError(report(subscription, provider, list(places)))


def report(subscription: Subscription, provider: Provider, places: list[ProviderPartition]) -> str:
    """How far the group is, what became of its messages, and what every thread does."""
    group = subscription.group
    backlog = Backlog(provider, group, places)
    lines = [
        f"{group} has not handled all of {subscription.queue}",
        f"behind: {sorted(backlog.behind())}",
        f"committed: {dict(provider.admin().committed_offsets({group: places})[group])}",
        f"ends: {dict(provider.admin().end_offsets(places))}",
        f"holds: {sorted(subscription.partitions)}, paused: {subscription.paused}, error: {subscription.error!r}",
        f"counts: {subscription.counts}",
        *_stacks(),
    ]
    return "\n".join(lines)


def _stacks() -> list[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [
        f"{names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    ]
