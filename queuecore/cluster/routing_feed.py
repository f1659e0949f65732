"""A producer's view of where messages go: it follows the latest routing version, and tells by which one it goes."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from queuecore.cluster.leases import Lease, boot_time
from queuecore.cluster.store import RoutingStore
from queuecore.errors import ConfigurationError, QueueError, StoreUnavailable
from queuecore.routing import RoutingTable

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.2
LEASE_S: Final = 15.0
# What a store may take to answer before who waits for it is told that it is away.
WAIT_S: Final = 5.0
_ENDING_S: Final = 5.0


class RoutingFeed:
    """Its methods are safe from any thread. Started once, stopped once.

    `use` is given each new table, on the feed's thread, and must not keep it waiting: `Router.publish`, or anything
    that answers by the table once it returns. Where it returns False or raises, the producer stays with what it has,
    and is seen to lag. `is_over` is asked whether nothing that was addressed by another version is under way; the
    version in use is acknowledged as soon as that is so. Until then the one before it is.

    While the store is away, which is said once, the producer goes on with what it has. One that is started meanwhile
    has nothing: `wait_ready` waits for the store, but not for ever.
    """

    def __init__(
        self,
        store: RoutingStore,
        producer_id: str,
        use: Callable[[RoutingTable], object],
        is_over: Callable[[int], bool] = lambda _version: True,
        *,
        look_every_s: float = LOOK_EVERY_S,
        lease_s: float = LEASE_S,
        now: Callable[[], float] = boot_time,
    ) -> None:
        if not 0 < look_every_s * 5 <= lease_s:
            raise ConfigurationError(
                f"look_every_s is {look_every_s:g} and lease_s {lease_s:g}; use more than 0, and at most a fifth of "
                "the lease"
            )
        self.producer_id = producer_id
        self._store = store
        self._use = use
        self._is_over = is_over
        self._look_every_s, self._lease_s = look_every_s, lease_s
        self._lease = Lease(now)
        self._acknowledge_at = float("-inf")
        # In use, and acknowledged.
        self._version = self._acknowledged = 0
        # Before the last look that succeeded, and why the last one did not.
        self._confirmed_at = float("-inf")
        self._error: Exception | None = None
        # Looks are numbered: who asks for one waits until one that began later has ended.
        self._looking = threading.Condition()
        self._begun = self._ended = 0
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="routing-feed", daemon=True)

    @property
    def version(self) -> int:
        """By which the producer routes. 0: none."""
        return self._version

    @property
    def age_s(self) -> float:
        """How long ago that was known to be the latest one; infinite where it never was."""
        return self._lease.now() - self._confirmed_at

    @property
    def is_current(self) -> bool:
        """Whether the others still count on what this producer acknowledged. After that they may believe it gone."""
        return self._lease.remaining_s > 0

    def start(self) -> None:
        """Returns at once, whether the store is there or not."""
        self._thread.start()

    def stop(self) -> None:
        """Follow no longer, and be no producer any more."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_ENDING_S)
        self._lease.end()

    def refresh(self, timeout_s: float = WAIT_S) -> None:
        """Go by the version that is the latest now. StoreUnavailable where that cannot be known: what is had stays."""
        with self._looking:
            wanted = self._begun + 1
            self._wake.set()
            is_done = self._looking.wait_for(lambda: self._ended >= wanted or self._stopping.is_set(), timeout_s)
            error = self._error
        if not is_done or self._stopping.is_set() or error is not None:
            raise self._unavailable(error)

    def wait_ready(self, timeout_s: float = WAIT_S) -> None:
        """Until the store was once asked, and what it has is in use. StoreUnavailable where that takes longer."""
        deadline = time.monotonic() + timeout_s
        with self._looking:
            while self._confirmed_at == float("-inf"):
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0 or self._stopping.is_set():
                    raise self._unavailable(self._error)
                self._looking.wait(remaining_s)

    def _unavailable(self, error: Exception | None) -> StoreUnavailable:
        if isinstance(error, StoreUnavailable):
            return error
        why = "it was stopped" if self._stopping.is_set() else error or "the cluster's store does not answer"
        return StoreUnavailable(f"producer {self.producer_id} does not know the latest routing version: {why}")

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                self._try_to_look()
                self._wake.wait(self._look_every_s)
        finally:
            self._leave()

    def _try_to_look(self) -> None:
        with self._looking:
            self._begun += 1
        asked_at, error = self._lease.now(), None
        try:
            self._look(asked_at)
        except Exception as caught:
            # Whatever it is: the thread goes on, and who waits is told.
            error = caught
        self._tell(error)
        with self._looking:
            self._ended, self._error = self._begun, error
            if error is None:
                self._confirmed_at = asked_at
            self._looking.notify_all()

    def _look(self, asked_at: float) -> None:
        # First, and whatever becomes of the rest: who cannot follow is there all the same, and lags.
        if asked_at >= self._acknowledge_at:
            self._acknowledge(asked_at)
        # Another one, not a later one: a store that was restored from a backup goes on from there.
        if self._store.routing_version() != self._version and self._load():
            self._acknowledge(asked_at)

    def _acknowledge(self, asked_at: float) -> None:
        told = self._version if self._is_over(self._version) else self._acknowledged
        self._store.acknowledge(self.producer_id, told, self._lease_s)
        self._lease.extend(asked_at, self._lease_s)
        self._acknowledged = told
        # What cannot be said yet is asked again at every look.
        self._acknowledge_at = asked_at + self._lease_s / 5 if told == self._version else asked_at

    def _load(self) -> bool:
        """Whether the producer goes by another version than before."""
        table = self._store.routing()
        if table is None or table.version == self._version:
            return False
        if self._use(table) is False:
            raise ConfigurationError(
                f"routing version {table.version} is refused for another that is taken for newer; start this program "
                "again"
            )
        # If that cannot be said now, it is at the next look.
        self._version, self._acknowledge_at = table.version, float("-inf")
        logger.info("messages go by routing version %d", table.version)
        return True

    def _tell(self, error: Exception | None) -> None:
        """What is tried in vain again and again is said once, and so is its end."""
        if error is not None:
            level = logging.DEBUG if type(error) is type(self._error) else logging.WARNING
            trace = None if isinstance(error, QueueError) else error
            told = "%s; messages go on by routing version %d"
            logger.log(level, told, error, self._version, exc_info=trace)
        elif self._error is not None:
            logger.info("the routing can be read again; messages go by version %d", self._version)

    def _leave(self) -> None:
        try:
            self._store.forget_producer(self.producer_id)
        except Exception as error:
            logger.warning("%s is remembered as a producer until its lease ends: %s", self.producer_id, error)
        finally:
            self._store.close()
            with self._looking:
                self._looking.notify_all()
