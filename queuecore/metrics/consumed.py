"""What a consumer does with one partition, counted for samples and for Prometheus."""

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final, Protocol

from queuecore.consuming.work import Outcome, Work
from queuecore.deadletter.envelope import FINGERPRINT
from queuecore.messages import TENANT_ID, Record, text_header
from queuecore.metrics import MOST_FINGERPRINTS, OTHER, PROCESSING_BOUNDS_MS
from queuecore.metrics.sampling import EntitySample
from queuecore.metrics.shares import MOST_TENANT_BYTES, TenantShares
from queuecore.processing.strategies import Verdict
from queuecore.proto.events_pb2 import ConsumedSample, LetterShare
from queuecore.topics import TopicPartitionInfo

_ERRORS: Final = {Outcome.FAILED: "failed", Outcome.TIMED_OUT: "timed_out"}


@dataclass(slots=True)
class ConsumedCounts:
    """Of one partition, under the names of `ConsumedSample`."""

    polled: int = 0
    polled_bytes: int = 0
    packs: int = 0
    commits: int = 0
    succeeded: int = 0
    failed: int = 0
    timed_out: int = 0
    retried: int = 0
    handled: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    processing_total_ms: float = 0.0
    processing_buckets: list[int] = field(default_factory=lambda: [0] * (len(PROCESSING_BOUNDS_MS) + 1))

    def add(self, other: "ConsumedCounts") -> None:
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        pairs = zip(self.processing_buckets, other.processing_buckets, strict=True)
        self.processing_buckets = [one + more for one, more in pairs]

    def numbers(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in _NUMBERS}

    @property
    def errors(self) -> int:
        return self.failed + self.timed_out


_NUMBERS: Final = tuple(one.name for one in fields(ConsumedCounts) if one.name != "processing_buckets")


class _Interval:
    """What happened since the last sample."""

    __slots__ = ("counts", "entities", "has_any", "letters", "tenants")

    def __init__(self, owner: bytes) -> None:
        self.has_any = False
        self.counts = ConsumedCounts()
        self.tenants = TenantShares(owner)
        self.entities = EntitySample()
        self.letters: Counter[tuple[str, bytes]] = Counter()


class ConsumedRecorder(Protocol):
    """Told by the thread that reads, once for many messages."""

    def polled(self, records: Sequence[Record], size: int) -> None:
        """These were read; `size` is how many bytes their data have."""

    def packed(self) -> None:
        """A pack was made, and is about to be handled."""

    def attempted(self, succeeded: Mapping[bytes | None, int], verdict: Verdict, took_s: float) -> None:
        """As `Counter.attempt`."""

    def committed(self) -> None: ...

    def settled(self, works: Sequence[Work], special: Sequence[Work]) -> None:
        """These are done with, and committed; `special` are those of them with more to it than that their handlers
        returned."""

    def dropped(self, number: int) -> None:
        """So many that are committed were left unfinished."""

    def release(self) -> None:
        """The partition is another's."""


class Unrecorded:
    """Nobody wants to know."""

    def polled(self, records: Sequence[Record], size: int) -> None: ...

    def packed(self) -> None: ...

    def attempted(self, succeeded: Mapping[bytes | None, int], verdict: Verdict, took_s: float) -> None: ...

    def committed(self) -> None: ...

    def settled(self, works: Sequence[Work], special: Sequence[Work]) -> None: ...

    def dropped(self, number: int) -> None: ...

    def release(self) -> None: ...


UNRECORDED: Final = Unrecorded()


class PartitionRecorder:
    """Told by whoever has the partition, asked by any thread. What is told is in one sample, whenever that is taken:
    each step is taken whole or not at all."""

    def __init__(
        self, queue: str, queue_id: str, group: str, info: TopicPartitionInfo, *, is_told_alone: bool = True
    ) -> None:
        self.queue = queue
        # Prometheus is shown it by itself, or together with others: always the same, as counters must not fall.
        self.is_told_alone = is_told_alone
        self.queue_id = queue_id
        self.group = group
        self.info = info
        # How many have the partition, or have not let go of it yet.
        self.holders = 0
        # When it was looked, and nothing had happened since.
        self.quiet_since: float | None = None
        self._owner = str(info.tenant_id or "").encode()
        # Held for a moment: by who tells, once for many messages, and by who asks.
        self._lock = threading.Lock()
        self._before = ConsumedCounts()
        self._now = _Interval(self._owner)

    def polled(self, records: Sequence[Record], size: int) -> None:
        with self._lock:
            now = self._now
            now.has_any = True
            now.counts.polled += len(records)
            now.counts.polled_bytes += size
            now.entities.add(records)

    def packed(self) -> None:
        with self._lock:
            self._now.has_any = True
            self._now.counts.packs += 1

    def attempted(self, succeeded: Mapping[bytes | None, int], verdict: Verdict, took_s: float) -> None:
        if not succeeded and not verdict.given_up and not verdict.again and not verdict.postponed:
            return
        took_ms = took_s * 1000
        with self._lock:
            now = self._now
            now.has_any = True
            counts = now.counts
            counts.processing_buckets[bisect_left(PROCESSING_BOUNDS_MS, took_ms)] += 1
            counts.processing_total_ms += took_ms
            counts.succeeded += sum(succeeded.values())
            if verdict.given_up or verdict.again:
                _count_errors(now, verdict)

    def committed(self) -> None:
        with self._lock:
            self._now.has_any = True
            self._now.counts.commits += 1

    def settled(self, works: Sequence[Work], special: Sequence[Work]) -> None:
        for work in special:
            if not work.deliveries:
                work.tenant = work.record.headers.get(TENANT_ID)
        if special:
            works = [work for work in works if work.outcome is not Outcome.PASSED_OVER]
        letters = [work for work in special if work.reason and work.outgoing]
        dropped = sum(1 for work in special if work.reason and not work.outgoing)
        shares = list(_by_tenant(works))
        with self._lock:
            now = self._now
            now.has_any = True
            now.counts.handled += len(works) - len(letters) - dropped
            now.counts.dead_lettered += len(letters)
            now.counts.dropped += dropped
            for tenant, messages, size in shares:
                share = now.tenants.of(tenant)
                share.messages += messages
                share.bytes += size
            for work in letters:
                now.tenants.of(work.tenant).dead_letters += 1
                _count_letter(now.letters, work)

    def dropped(self, number: int) -> None:
        with self._lock:
            self._now.has_any = True
            self._now.counts.dropped += number

    def hold(self) -> None:
        """Somebody has the partition, until `release`."""
        with self._lock:
            self.holders += 1

    def release(self) -> None:
        with self._lock:
            self.holders -= 1

    @property
    def counts(self) -> ConsumedCounts:
        """Since it was made."""
        all_of_it = ConsumedCounts()
        with self._lock:
            all_of_it.add(self._before)
            all_of_it.add(self._now.counts)
        return all_of_it

    def take(self, interval_ms: int) -> ConsumedSample | None:
        """What happened since this was last asked, if anything did."""
        if not self._now.has_any:
            return None
        following = _Interval(self._owner)
        with self._lock:
            taken, self._now = self._now, following
            self._before.add(taken.counts)
        return ConsumedSample(
            queue_id=self.queue_id,
            partition=self.info.partition or 0,
            topic=self.info.place.topic,
            group=self.group,
            interval_ms=interval_ms,
            processing_bounds_ms=PROCESSING_BOUNDS_MS,
            processing_buckets=taken.counts.processing_buckets,
            tenants=taken.tenants.told(),
            entities=taken.entities.told(),
            letters=_told_letters(taken.letters),
            **taken.counts.numbers(),  # type: ignore[arg-type]
        )


def _count_errors(now: _Interval, verdict: Verdict) -> None:
    for works, is_again in ((verdict.given_up, False), (verdict.again, True)):
        for work in works:
            if (name := _ERRORS.get(work.outcome)) is not None:
                setattr(now.counts, name, getattr(now.counts, name) + 1)
                now.counts.retried += is_again
                now.tenants.of(work.tenant).errors += 1


def _by_tenant(works: Sequence[Work]) -> Iterator[tuple[bytes | None, int, int]]:
    """Whose they are: how many, and how many bytes. Every message passes here."""
    tenants, sizes = [work.tenant for work in works], [work.size for work in works]
    if tenants and tenants.count(tenants[0]) == len(tenants):
        # As it is nearly always in a queue of one tenant, or of none.
        yield tenants[0], len(sizes), sum(sizes)
        return
    each: defaultdict[bytes | None, list[int]] = defaultdict(list)
    for tenant, size in zip(tenants, sizes, strict=True):
        each[tenant].append(size)
    for tenant, sizes in each.items():
        yield tenant, len(sizes), sum(sizes)


def _count_letter(letters: Counter[tuple[str, bytes]], work: Work) -> None:
    # What does not fit into the letter comes before it.
    fingerprint = text_header(work.outgoing[-1].message.headers, FINGERPRINT) or ""
    key = (fingerprint, (work.tenant or b"")[:MOST_TENANT_BYTES])
    letters[key if key in letters or len(letters) < MOST_FINGERPRINTS else (OTHER, b"")] += 1


def _told_letters(letters: Counter[tuple[str, bytes]]) -> Iterator[LetterShare]:
    for (fingerprint, tenant), number in letters.items():
        tenant_id = tenant.decode(errors="replace")
        yield LetterShare(fingerprint=fingerprint, tenant_id=tenant_id, letters=number)
