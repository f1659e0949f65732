"""Cleaning the whole log, now and then, by one process at a time."""

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from queuecore.clock import Clock
from queuecore.errors import QueueError, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.cleaning import clean_partition
from queuecore.providers.log.compaction import compact_partition
from queuecore.providers.log.files import FileLock, partition_dir
from queuecore.providers.log.groups import Groups
from queuecore.providers.log.membership import sweep_members
from queuecore.providers.log.reader import Outcome
from queuecore.providers.log.removal import sweep_topics
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)


class Cleaner:
    """Removes and compacts what topics no longer want, and what the dead left behind. Safe from any thread."""

    def __init__(self, root: Path, catalog: Catalog, groups: Groups, outcome: Outcome, clock: Clock) -> None:
        self._root = root
        self._catalog = catalog
        self._groups = groups
        self._outcome = outcome
        self._clock = clock
        self._is_stopping = threading.Event()

    def clean(self) -> None:
        """Go over everything now; waits for whoever is cleaning already."""
        with closing(FileLock(self._root / "clean.lock")) as lock, lock:
            self._clean_all()

    def clean_unless_busy(self) -> bool:
        """Go over everything now, unless someone else is doing that already; whether it was done."""
        with closing(FileLock(self._root / "clean.lock")) as lock:
            if not lock.try_lock():
                return False
            self._clean_all()
        return True

    def stop(self) -> None:
        """End what is under way at the next partition or segment; it goes on there another time."""
        self._is_stopping.set()

    def _clean_all(self) -> None:
        sweep_deleted = partial(sweep_topics, self._root, self._catalog, self._groups)
        self._try("the wreckage of deleted topics", sweep_deleted)
        self._try("the files of members that are gone", partial(sweep_members, self._root))
        for spec in self._catalog.topics().values():
            for number in range(spec.partitions):
                place = ProviderPartition(spec.name, number)
                if self._is_stopping.is_set():
                    return
                self._try(str(place), partial(self._clean_partition, place, spec))

    def _clean_partition(self, place: ProviderPartition, spec: TopicSpec) -> None:
        now_ms, is_stopping = self._clock.now_ms(), self._is_stopping.is_set
        if not partition_dir(self._root, place).is_dir():
            return  # a writer would make it
        try:
            clean_partition(self._root, place, spec, now_ms)
            if spec.is_compacted:
                compact_partition(
                    self._root, place, spec, self._catalog, self._outcome, now_ms, is_stopping=is_stopping
                )
        except (UnknownTopic, FileNotFoundError):
            if place.topic in self._catalog.topics():
                raise
            logger.debug("%s was deleted while it was cleaned", place)

    def _try(self, what: str, clean: Callable[[], None]) -> None:
        """One partition's trouble is its own."""
        try:
            clean()
        except (QueueError, OSError) as error:
            logger.error("cannot clean %s: %s; it takes up space until it can", what, error)
        except Exception:
            logger.exception("cannot clean %s; it takes up space until it can", what)


class CleaningThread:
    """Cleans every so many seconds, until it is stopped. Nothing that goes wrong ends it."""

    def __init__(self, cleaner: Cleaner, every_s: float) -> None:
        self._cleaner = cleaner
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-cleaner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing is under way any more."""
        self._stop.set()
        self._cleaner.stop()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self._cleaner.clean_unless_busy()
            except Exception:
                logger.exception("cannot clean the log; it grows until that works again")
