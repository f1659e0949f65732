"""What producers store in one partition, counted for samples and for Prometheus."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from queuecore.errors import QueueError
from queuecore.messages import TENANT_ID, QueueMessage, RecordMetadata
from queuecore.metrics.shares import Share, TenantShares
from queuecore.proto.events_pb2 import SentSample
from queuecore.providers.base import SendCallback
from queuecore.topics import ProviderPartition

_data_of, _headers_of = attrgetter("data"), attrgetter("headers")


@dataclass(slots=True)
class SentCounts:
    """Of one partition, under the names of `SentSample`."""

    sent: int = 0
    sent_bytes: int = 0
    failed: int = 0

    def add(self, other: "SentCounts") -> None:
        self.sent += other.sent
        self.sent_bytes += other.sent_bytes
        self.failed += other.failed

    def add_shares(self, shares: Iterable[Share]) -> None:
        for share in shares:
            self.sent += share.messages
            self.sent_bytes += share.bytes
            self.failed += share.errors


class SentRecorder:
    """Safe from any thread. Every message that is sent passes here: tenants' shares alone are counted, and make the
    rest."""

    def __init__(self, place: ProviderPartition, *, is_told_alone: bool = True) -> None:
        self.place = place
        # As `PartitionRecorder` has it.
        self.is_told_alone = is_told_alone
        # When it was looked, and nothing had happened since.
        self.quiet_since: float | None = None
        self._lock = threading.Lock()
        self._before = SentCounts()
        self._tenants = TenantShares()

    def answered(
        self, message: QueueMessage, callback: SendCallback, metadata: RecordMetadata | None, error: QueueError | None
    ) -> None:
        """The provider has said what became of it: counted, and passed on."""
        if error is None:
            self.stored(message)
        else:
            self.refused(message)
        callback(metadata, error)

    def stored(self, message: QueueMessage) -> None:
        size, tenant = len(message.data), message.headers.get(TENANT_ID)
        # Not by `with`, which costs twice as much.
        self._lock.acquire()
        try:
            share = self._tenants.of(tenant)
            share.messages += 1
            share.bytes += size
        finally:
            self._lock.release()

    def stored_together(self, messages: Sequence[QueueMessage]) -> None:
        sizes = list(map(len, map(_data_of, messages)))
        tenants = [headers.get(TENANT_ID) for headers in map(_headers_of, messages)]
        told = {tenants[0]: (len(sizes), sum(sizes))} if len(set(tenants)) == 1 else _by_tenant(tenants, sizes)
        with self._lock:
            for tenant, (count, size) in told.items():
                share = self._tenants.of(tenant)
                share.messages += count
                share.bytes += size

    def refused(self, message: QueueMessage) -> None:
        with self._lock:
            self._tenants.of(message.headers.get(TENANT_ID)).errors += 1

    @property
    def counts(self) -> SentCounts:
        """Since it was made."""
        all_of_it = SentCounts()
        with self._lock:
            all_of_it.add(self._before)
            all_of_it.add_shares(self._tenants)
        return all_of_it

    def take(self, interval_ms: int) -> SentSample | None:
        """What happened since this was last asked, if anything did."""
        taken = SentCounts()
        with self._lock:
            if not self._tenants:
                return None
            tenants, self._tenants = self._tenants, TenantShares()
            taken.add_shares(tenants)
            self._before.add(taken)
        return SentSample(
            topic=self.place.topic,
            partition=self.place.partition,
            interval_ms=interval_ms,
            sent=taken.sent,
            sent_bytes=taken.sent_bytes,
            failed=taken.failed,
            tenants=tenants.told(),
        )


def _by_tenant(tenants: Iterable[bytes | None], sizes: Iterable[int]) -> Mapping[bytes | None, tuple[int, int]]:
    """How many messages, and of how many bytes."""
    told: dict[bytes | None, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for tenant, size in zip(tenants, sizes, strict=True):
        messages, total = told[tenant]
        told[tenant] = messages + 1, total + size
    return told
