"""Appending to one partition, and mending it after a crash."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from queuecore.errors import ProviderUnavailable, UnknownTopic
from queuecore.providers.log.active import ActiveSegment, notes_of_empty
from queuecore.providers.log.batch import ANONYMOUS, EncodedBody, Origin
from queuecore.providers.log.bell import Bell
from queuecore.providers.log.files import FileLock, make_durably, partition_dir, segment_bases
from queuecore.providers.log.page import Notes, PartitionPage
from queuecore.providers.log.segment import HEAD_SIZE, Segment
from queuecore.providers.log.sequences import Sequences
from queuecore.topics import ProviderPartition

SEGMENT_BYTES = 50 * 1024 * 1024
SEGMENT_MS = 7 * 24 * 60 * 60 * 1000


class PartitionWriter:
    """Appends batches to one partition; several processes may each have one. For one thread.

    An append holds the partition's lock. How far the active segment is whole is noted in the partition's page before
    the lock is released. The next holder believes it if it fits the file; if not, a writer died half-way, and what
    follows the last believed position is checked, batch by batch, before anything is added.
    """

    def __init__(
        self,
        root: Path,
        partition: ProviderPartition,
        segment_bytes: int = SEGMENT_BYTES,
        segment_ms: int = SEGMENT_MS,
        any_bell: Bell | None = None,
    ) -> None:
        """`any_bell` rings with every append, for those who wait for more than one partition."""
        self._partition = partition
        self._directory = partition_dir(root, partition)
        make_durably(self._directory, below=root)
        self.segment_bytes = segment_bytes
        self.segment_ms = segment_ms
        self.sequences = Sequences(self._directory)
        self._any_bell = any_bell
        self._page = PartitionPage(self._directory)
        self._append_lock = FileLock(self._directory / "append.lock")
        self._sync_lock = FileLock(self._directory / "sync.lock")
        self._active: ActiveSegment | None = None

    def append(self, body: EncodedBody, timestamp_ms: int, *, sync: bool, origin: Origin = ANONYMOUS) -> int:
        """Store the batch and return its first record's offset. All of it or nothing is there. A batch that this
        producer has stored before is not stored again; its offset is returned.

        ProviderUnavailable when the disk refuses, UnknownTopic when the topic was deleted, OutOfSequence or
        ProducerFenced where the producer's batch does not follow its last one.
        """
        with self._append_lock:
            active = self._ready(timestamp_ms)
            base_offset = self.sequences.find(origin, body.records)
            if base_offset is None:
                base_offset = self._add(active, body, timestamp_ms, origin)
            if not sync:
                self._publish(active.notes.next_offset)
                return base_offset
        self.sync(base_offset + body.records)
        with self._append_lock:
            self._publish(base_offset + body.records)
        return base_offset

    def sync(self, offset: int) -> None:
        """Wait until everything below this offset is on disk. Writers that wait together share one wait."""
        self._refuse_removed()
        with self._sync_lock:
            if self._page.synced >= offset:
                return
            active = self._active or self._opened()
            noted = self._page.notes()
            if noted is not None and noted.base > active.base:
                return  # who began that segment has waited for the end of this one
            try:
                active.sync()
            except OSError as error:
                with suppress(OSError), self._append_lock:
                    active.write_again()
                raise self._unconfirmed(offset, error) from error
            self._page.set_synced(offset if noted is None else noted.next_offset)

    def recover(self) -> None:
        """Bring files and page into agreement, as the first append would."""
        with self._append_lock:
            self._refuse_removed()
            self._publish(self._caught_up().notes.next_offset)

    def roll(self) -> None:
        """Close the active segment, if there is anything in it, and begin another."""
        with self._append_lock:
            self._refuse_removed()
            active = self._caught_up()
            if active.notes.size > HEAD_SIZE:
                self._begin_next(active)

    @contextmanager
    def exclusively(self) -> Iterator[Notes]:
        """Nobody appends, rolls or deletes the topic meanwhile. How far the active segment is whole; the segments
        below its base are closed. UnknownTopic when the topic was deleted."""
        with self._append_lock:
            self._refuse_removed()
            yield self._caught_up().notes

    @property
    def end(self) -> int:
        """The offset behind the last record that may be read."""
        return self._page.end

    @property
    def beginning(self) -> int:
        """Records below this offset count as removed."""
        return self._page.beginning

    def begin_at(self, offset: int) -> None:
        """Let the partition begin at this offset: what is below counts as removed. ProviderUnavailable when the disk
        refuses."""
        with self._append_lock:
            self._refuse_removed()
            # On disk first: were the end lost in a power cut, new records would get offsets below the beginning.
            try:
                self._caught_up().sync_or_write_again()
            except OSError as error:
                raise self._unconfirmed(offset, error) from error
            self._page.begin_at(offset)

    def ring(self) -> None:
        """Wake those who wait for this partition."""
        self._page.bell.ring()
        if self._any_bell is not None:
            self._any_bell.ring()

    def mark_removed(self) -> None:
        """Refuse everyone who has the partition open."""
        with self._append_lock:
            self._page.mark_removed()

    def close(self) -> None:
        if self._active is not None:
            self._active.close()
        self._page.close()
        self._append_lock.close()
        self._sync_lock.close()

    def _unconfirmed(self, offset: int, error: OSError) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"{self._partition}: the disk under {self._directory} did not confirm that offset {offset - 1} is stored: "
            f"{error.strerror}; mend the disk, then send again"
        )

    def _publish(self, offset: int) -> None:
        self._page.publish(offset)
        self.ring()

    def _ready(self, now_ms: int) -> ActiveSegment:
        """The segment that the next batch goes to."""
        self._refuse_removed()
        active = self._caught_up()
        if active.notes.size == HEAD_SIZE:
            return active  # an empty one, however small segments are: the next would have its name
        if active.notes.size >= self.segment_bytes or active.is_old(now_ms, self.segment_ms):
            active = self._begin_next(active)
        return active

    def _add(self, active: ActiveSegment, body: EncodedBody, timestamp_ms: int, origin: Origin) -> int:
        header = body.header(active.notes.next_offset, body.records, timestamp_ms, origin)
        try:
            active.write(header, body.body)
        except OSError as error:
            raise ProviderUnavailable(
                f"cannot append to {self._partition} in {self._directory}: {error.strerror}; nothing of this "
                "batch was stored. Free space or mend the folder, then send again"
            ) from error
        self._page.note(active.notes)
        self.sequences.stored(header)
        return header.base_offset

    def _refuse_removed(self) -> None:
        if self._page.is_removed:
            name = self._partition.topic
            raise UnknownTopic(f"topic {name!r} was deleted; create it first", topic=name)

    def _opened(self) -> ActiveSegment:
        with self._append_lock:
            return self._caught_up()

    def _caught_up(self) -> ActiveSegment:
        """The active segment, with everything in it that other writers left behind."""
        noted = self._page.notes()
        active = self._active
        if active is None or noted != active.notes or active.size != active.notes.size:
            active = self._active = self._catch_up(noted)
        return active

    def _catch_up(self, noted: Notes | None) -> ActiveSegment:
        active = self._open_last()
        if noted is not None and noted.base == active.base and noted.size <= active.size:
            active.notes = noted
            if noted.size == active.size:
                return active
        else:
            active.start_over()
        active.check_tail(self._page.synced)
        if self._page.synced > active.notes.next_offset:
            self._page.set_synced(0)  # a page that promises too much is not to be believed at all
        self._page.cut(active.notes.next_offset)
        self._page.note(active.notes)
        return active

    def _open_last(self) -> ActiveSegment:
        bases = segment_bases(self._directory)
        if not bases:
            # Nothing that was ever read may be numbered again.
            first = max(self._page.end, self._page.beginning)
            return self._open(Segment.create(self._directory, first))
        if self._active is not None and self._active.base == bases[-1]:
            return self._active
        return self._open(Segment(self._directory, bases[-1], writable=True))

    def _begin_next(self, active: ActiveSegment) -> ActiveSegment:
        """The page says so first: if this process dies before the new file is there, the next writer misses it, looks
        what there is, and goes on with the old one."""
        active.finish()
        base = active.notes.next_offset
        self._page.note(notes_of_empty(base))
        return self._open(Segment.create(self._directory, base))

    def _open(self, segment: Segment) -> ActiveSegment:
        replaced, self._active = self._active, ActiveSegment(self._directory, segment)
        if replaced is not None:
            replaced.close()
        return self._active
