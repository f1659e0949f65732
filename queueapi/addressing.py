"""Where this process sends messages: by the latest routing version."""

import atexit
import os
import threading

from queueapi import runtime
from queueapi.cluster.store import DatabaseStore
from queueapi.identity import service_id
from queueapi.queue_addresses import QueueAddresses
from queuecore.cluster.routing_feed import RoutingFeed


def addresses() -> QueueAddresses:
    """Those of this process, which is a producer from the first time that it asks. Whoever needs them before the
    cluster's store was ever there waits for some seconds: StoreUnavailable."""
    global _open
    if (opened := _open) is None:
        with _lock:
            if (opened := _open) is None:
                opened = _open = _follow()
    return opened[1]


def close_addresses() -> None:
    """Be no producer any more, at the end of a process or of a test."""
    global _open
    with _lock:
        opened, _open = _open, None
    if opened is not None:
        opened[0].stop()


def _follow() -> tuple[RoutingFeed, QueueAddresses]:
    def renew() -> None:
        feed.wait_ready()
        feed.refresh()

    followed = QueueAddresses(renew=renew)
    feed = RoutingFeed(DatabaseStore(), service_id(), followed.use, followed.is_over)
    feed.start()
    return feed, followed


def _forget_parent() -> None:
    """A process that was forked has nothing: its parent's thread is not its own."""
    global _open, _lock
    _open, _lock = None, threading.Lock()


_lock = threading.Lock()
_open: tuple[RoutingFeed, QueueAddresses] | None = None
os.register_at_fork(after_in_child=_forget_parent)
atexit.register(close_addresses)
# Who sends nothing any more is no producer.
runtime.before_close(close_addresses)
