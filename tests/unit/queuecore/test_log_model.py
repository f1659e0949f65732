"""The log beside a list: whatever is done to it, in whatever order, it is what a list would be.

The list holds everything that was ever stored, by offset. What compaction and retention take, and when, is theirs to
choose; the model checks that they were allowed to, and goes on with what they left.
"""

import os
import shutil
import tempfile
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from queuecore.errors import OffsetOutOfRange
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import Cleanup, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log import page as page_module
from queuecore.providers.log.batch import ANONYMOUS, Origin, encode_body
from queuecore.providers.log.files import partition_dir, segment_bases, segment_path
from queuecore.providers.log.page import PageView
from queuecore.providers.log.reader import PartitionReader
from queuecore.providers.log.segment import HEAD_SIZE, Segment
from queuecore.providers.log.times import offset_for_time
from queuecore.providers.log.transactions import LogTransaction
from queuecore.providers.log.writer import PartitionWriter
from queuecore.providers.options import ProducerOptions
from queuecore.testing.clock import ManualClock
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("model", 0)
PLACE = INFO.place
RETENTION_MS = 50_000
SEGMENT_BYTES = 700

keys = st.sampled_from([b"a", b"b", b"c"])
messages = st.builds(QueueMessage, keys, st.binary(min_size=1, max_size=40)) | st.builds(QueueMessage.tombstone, keys)
batches = st.lists(messages, min_size=1, max_size=4)
whos = st.sampled_from([0, 1])
fractions = st.floats(0, 1)


class Entry(NamedTuple):
    key: bytes
    data: bytes
    at_ms: int
    # The transaction it belongs to, if any.
    transaction: int | None = None


class Sent(NamedTuple):
    origin: Origin
    batch: list[QueueMessage]
    base: int


class Model:
    def __init__(self) -> None:
        # What was stored, by offset; None where it is known to be gone.
        self.entries: list[Entry | None] = []
        self.beginning = 0
        # Everything below has been waited for.
        self.synced = 0
        self.outcomes: dict[int, bool | None] = {}

    @property
    def end(self) -> int:
        return len(self.entries)

    def add(self, batch: list[QueueMessage], at_ms: int, transaction: int | None = None) -> None:
        self.entries += [Entry(one.key, one.data, at_ms, transaction) for one in batch]  # type: ignore[arg-type]

    def is_visible(self, offset: int) -> bool | None:
        entry = self.entries[offset]
        if entry is None:
            return False
        return True if entry.transaction is None else self.outcomes[entry.transaction]

    def visible(self, start: int) -> dict[int, Entry]:
        """What a reader sees from there on: up to the first that is not decided."""
        found = {}
        for offset in range(max(start, self.beginning), self.end):
            is_visible = self.is_visible(offset)
            if is_visible is None:
                break
            if is_visible:
                found[offset] = self.entries[offset]
        return found  # type: ignore[return-value]

    def is_superseded(self, offset: int) -> bool:
        """Whether compaction may take it: a later one has its key."""
        entry = self.entries[offset]
        assert entry is not None
        return any(later.key == entry.key for at, later in self.visible(offset).items() if at > offset)

    def first_since(self, time_ms: int) -> int:
        """Whatever became of its transaction."""
        entries = enumerate(self.entries[self.beginning :], self.beginning)
        return next((at for at, one in entries if one is not None and one.at_ms >= time_ms), self.end)


class LogMachine(RuleBasedStateMachine):
    @initialize(cleanup=st.sampled_from(["delete", "compact"]))
    def create(self, cleanup: Cleanup) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="log-model-"))
        self.patch = pytest.MonkeyPatch()
        self.clock = ManualClock()
        self.model = Model()
        self.cleanup = cleanup
        self.boots = 0
        self.producers = 1_000
        self.sent: list[list[Sent]] = [[], []]
        self.provider = LogProvider(self.root, ProducerOptions(acks="1"), clock=self.clock, clean_every_s=10_000)
        self.provider.admin().create_topics([TopicSpec(PLACE.topic, retention_ms=RETENTION_MS, cleanup=cleanup)])
        self._open()

    # --- writing

    @rule(who=whos, batch=batches, sync=st.booleans())
    def append(self, who: int, batch: list[QueueMessage], sync: bool) -> None:
        history = self.sent[who]
        sequence = history[-1].origin.sequence + len(history[-1].batch) if history else 0
        one = Sent(Origin(self.numbers[who], 0, sequence), batch, self.model.end)
        at_ms = self.clock.now_ms()
        assert self.writers[who].append(encode_body(batch), at_ms, sync=sync, origin=one.origin) == one.base
        self.model.add(batch, at_ms)
        history.append(one)
        if sync:
            self.model.synced = self.model.end

    @precondition(lambda self: any(self._known(who) for who in (0, 1)))
    @rule(data=st.data())
    def send_a_batch_again(self, data: st.DataObject) -> None:
        who = data.draw(st.sampled_from([who for who in (0, 1) if self._known(who)]))
        one = data.draw(st.sampled_from(self._known(who)))
        answer = self.writers[who].append(encode_body(one.batch), 0, sync=False, origin=one.origin)
        assert answer == one.base

    @rule(who=whos)
    def reopen_a_writer(self, who: int) -> None:
        self.writers[who].close()
        self.writers[who] = PartitionWriter(self.root, PLACE, SEGMENT_BYTES)

    @rule(who=whos)
    def roll(self, who: int) -> None:
        self.writers[who].roll()
        self.model.synced = self.model.end

    @rule(seconds=st.integers(1, 30))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.advance(seconds)

    # --- transactions

    @precondition(lambda self: self.transaction is None)
    @rule()
    def begin(self) -> None:
        self.transaction = self.producer.begin()
        self.model.outcomes[self.transaction._number] = None
        self.waiting: list[QueueMessage] = []

    @precondition(lambda self: self.transaction is not None)
    @rule(batch=batches, write=st.booleans())
    def send_in_the_transaction(self, batch: list[QueueMessage], write: bool) -> None:
        assert self.transaction is not None
        for one in batch:
            self.transaction.send(INFO, one)
        self.waiting += batch
        if write:
            self._write_waiting()

    @precondition(lambda self: self.transaction is not None)
    @rule(commits=st.booleans())
    def end_the_transaction(self, commits: bool) -> None:
        transaction = self.transaction
        assert transaction is not None
        is_late = self.clock.now_ms() > self._deadline_ms(transaction)
        if commits and not is_late:
            self._write_waiting()
            transaction.commit()
            self.model.synced = max(self.model.synced, *transaction._ends.values(), 0)
        else:
            transaction.abort()
        self.model.outcomes[transaction._number] = commits and not is_late
        self.transaction = None

    # --- what takes records away

    @rule(fraction=fractions)
    def delete_records(self, fraction: float) -> None:
        offset = self.model.beginning + round(fraction * (self.model.end - self.model.beginning))
        assert self.provider.admin().delete_records({PLACE: offset}) == {PLACE: offset}
        self.model.beginning = offset
        self.model.synced = self.model.end

    @rule()
    def clean(self) -> None:
        self._expire_transaction()
        before = self.model.visible(0)
        self.provider.admin().clean()
        self._follow_retention()
        if self.cleanup == "compact":
            self._follow_compaction(before)

    # --- crashes

    @rule(torn=st.binary(max_size=100) | batches, whole=st.booleans())
    def kill_everyone(self, torn: bytes | list[QueueMessage], whole: bool) -> None:
        """They leave a torn tail, or a whole batch that nobody was told of."""
        self._close()
        if isinstance(torn, list):
            body = encode_body(torn)
            at_ms = self.clock.now_ms()
            raw = body.header(self.model.end, len(torn), at_ms, ANONYMOUS).pack() + body.body
            if whole:
                self.model.add(torn, at_ms)
            torn = raw if whole else raw[: len(raw) // 2]
        with segment_path(self.folder, segment_bases(self.folder)[-1]).open("ab") as segment:
            segment.write(torn)
        self._open()

    @rule(fraction=fractions)
    def cut_the_power(self, fraction: float) -> None:
        """What was not waited for is lost, from anywhere on."""
        self._close()
        # A wait for the disk covers what others have written meanwhile, too.
        self.model.synced = max(self.model.synced, PageView.read(self.folder).synced)
        self._truncate(fraction)
        self.boots += 1
        self.patch.setattr(page_module, "boot_id", lambda: b"%016d" % self.boots)
        self._open()

    # --- reading

    @rule(fraction=fractions, count=st.integers(1, 10))
    def read_from_anywhere(self, fraction: float, count: int) -> None:
        start = self.model.beginning + round(fraction * (self.model.end - self.model.beginning))
        wanted = dict(list(self.model.visible(start).items())[:count])
        self._same(self.seeking.read(start, count), wanted)

    @rule(fraction=fractions)
    def read_data_from_anywhere(self, fraction: float) -> None:
        start = self.model.beginning + round(fraction * (self.model.end - self.model.beginning))
        found: dict[int, bytes] = {}
        position = start
        while (column := self.seeking.read_data(position)) is not None:
            ends = accumulate(memoryview(column.lengths).cast("I"), initial=0)
            pieces = [bytes(column.data[begin:end]) for begin, end in pairwise(ends)]
            found |= dict(zip(column.offsets, pieces, strict=True))
            position = column.offsets[-1] + 1
        wanted = {offset: entry.data for offset, entry in self.model.visible(start).items()}
        assert {offset: data for offset, data in found.items() if offset >= start} == wanted

    @rule()
    def read_what_is_gone(self) -> None:
        if self.model.beginning:
            for read in (lambda at: self.seeking.read(at, 1), self.seeking.read_data):
                with pytest.raises(OffsetOutOfRange) as no:
                    read(self.model.beginning - 1)
                assert no.value.fields["beginning"] == self.model.beginning

    @rule(count=st.integers(1, 5))
    def follow(self, count: int) -> None:
        """A reader that goes on where it was. In a file that compaction replaced it may see what is gone."""
        start = self.position
        try:
            records = self.tailing.read(start, count)
        except OffsetOutOfRange as error:
            assert start < self.model.beginning
            self.position = error.fields["beginning"]
            return
        for record in records:
            assert record.offset >= start
            entry = self.model.entries[record.offset]
            assert entry is None or (entry.key, entry.data) == (record.key, record.data)
        seen = {record.offset for record in records}
        self.position = max(self.position, self.tailing.next_offset)
        missed = [at for at in self.model.visible(start) if at < self.position and at not in seen]
        assert missed == []
        if len(records) < count:
            assert not any(at >= self.position for at in self.model.visible(start))

    @precondition(lambda self: self.cleanup == "delete")
    @rule(seconds=st.integers(-5, 200))
    def find_a_time(self, seconds: int) -> None:
        time_ms = ManualClock().now_ms() + seconds * 1000
        assert offset_for_time(self.root, PLACE, self.seeking, time_ms) == self.model.first_since(time_ms)

    @invariant()
    def the_log_is_the_list(self) -> None:
        if not hasattr(self, "model"):
            return
        self._expire_transaction()
        assert (self.seeking.beginning(), self.seeking.end()) == (self.model.beginning, self.model.end)
        self._same(self.seeking.read(self.model.beginning, 10_000), self.model.visible(0))

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self._close()
            self.patch.undo()
            shutil.rmtree(self.root)

    # --- how

    @property
    def folder(self) -> Path:
        return partition_dir(self.root, PLACE)

    def _open(self) -> None:
        """As processes that begin: nobody knows anything that is not on disk."""
        if self.provider is None:
            self.provider = LogProvider(self.root, ProducerOptions(acks="1"), clock=self.clock, clean_every_s=10_000)
        self.writers = [PartitionWriter(self.root, PLACE, SEGMENT_BYTES) for _ in range(2)]
        self.writers[0].recover()
        self.numbers = [self.producers, self.producers + 1]
        self.producers += 2
        self.sent = [[], []]
        self.producer = self.provider.transactional_producer("model")
        self.transaction: LogTransaction | None = None
        outcome = self.provider._outcomes
        self.seeking = PartitionReader(self.root, PLACE, outcome)
        self.tailing = PartitionReader(self.root, PLACE, outcome)
        self.position = self.model.beginning

    def _close(self) -> None:
        for one in (*self.writers, self.seeking, self.tailing):
            one.close()
        if self.transaction is not None:
            self.model.outcomes[self.transaction._number] = False
        self.provider.close()
        self.provider = None  # type: ignore[assignment]

    def _known(self, who: int) -> list[Sent]:
        """The last batches that are sure to be recognised: compaction does not touch the active segment."""
        active = segment_bases(self.folder)[-1]
        return [one for one in self.sent[who][-5:] if one.base >= active]

    def _write_waiting(self) -> None:
        assert self.transaction is not None
        self.transaction._write(PLACE)
        self.model.add(self.waiting, self.clock.now_ms(), self.transaction._number)
        self.waiting = []

    def _deadline_ms(self, transaction: LogTransaction) -> int:
        """Until when it may commit; -1 where somebody found that it was open for too long."""
        with self.provider._database.reading() as db:
            row = db.execute("select deadline_ms from pending where id = ?", (transaction._number,)).fetchone()
        return row[0] if row else -1

    def _expire_transaction(self) -> None:
        """One that is open for too long is over for whoever looks at it."""
        if self.transaction is not None and self.clock.now_ms() > self._deadline_ms(self.transaction):
            number = self.transaction._number
            if any(one is not None and one.transaction == number for one in self.model.entries):
                self.model.outcomes[number] = False

    def _follow_retention(self) -> None:
        """What is younger than the retention stays, whatever goes."""
        beginning = self.provider.admin().beginning_offsets([PLACE])[PLACE]
        assert self.model.beginning <= beginning <= self.model.end
        for offset in range(self.model.beginning, beginning):
            entry = self.model.entries[offset]
            assert entry is None or self.clock.now_ms() - entry.at_ms > RETENTION_MS
        assert self.cleanup == "delete" or beginning == self.model.beginning
        self.model.beginning = beginning

    def _follow_compaction(self, before: dict[int, Entry]) -> None:
        """What is gone had to be superseded. No tombstone is old enough to go."""
        with closing(PartitionReader(self.root, PLACE, self.provider._outcomes)) as reader:
            left = {record.offset for record in reader.read(self.model.beginning, 10_000)}
        for offset in before:
            if offset >= self.model.beginning and offset not in left:
                assert self.model.is_superseded(offset)
                self.model.entries[offset] = None

    def _truncate(self, fraction: float) -> None:
        """Cut the active segment somewhere behind what was waited for; the model follows."""
        base = segment_bases(self.folder)[-1]
        with closing(Segment(self.folder, base)) as segment:
            ends = {header.end_offset: position + header.size for position, header in segment.headers()}
            size = segment.size
        safe = max((position for end, position in ends.items() if end <= self.model.synced), default=HEAD_SIZE)
        cut = safe + round(fraction * (size - safe))
        os.truncate(segment_path(self.folder, base), cut)
        end = max((end for end, position in ends.items() if position <= cut), default=base)
        del self.model.entries[end:]

    def _same(self, records: list[Record], wanted: dict[int, Entry]) -> None:
        found = {record.offset: (record.key, record.data, record.timestamp_ms) for record in records}
        assert found == {offset: one[:3] for offset, one in wanted.items()}


LogMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestLogIsAList = LogMachine.TestCase
