"""Who may publish how much through this process. Nothing is written for it: buckets and counts live in the process.

A quota of a rate holds in each process that publishes: with four web processes, four times as much may pass in all (ADR
22). Limits follow the database: at once where this process changes them, else within `LOOK_EVERY_S`.
"""

import logging
import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from queueapi.errors import InvalidInput, TenantSuspended
from queueapi.publishing_limits import Limits, read_limits
from queuecore.buckets import TokenBucket
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import PayloadTooLarge, QueueError, QueueOverloaded

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
# Retention makes room, nobody knows when.
_FULL_RETRY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What was published through this process since then; `refused` are messages that a quota or a suspension kept
    out. Bytes are of payloads."""

    since: datetime
    messages: int = 0
    bytes: int = 0
    refused: int = 0


@dataclass(slots=True)
class _Gate:
    """One tenant's. `limits` are None until they are read."""

    limits: Limits | None = None
    look_at_s: float = -math.inf
    messages_bucket: TokenBucket | None = None
    bytes_bucket: TokenBucket | None = None
    stored_here: int = 0
    messages: int = 0
    bytes: int = 0
    refused: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Admission:
    """The gates of all tenants. Safe from any thread."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._since = timezone.now()
        self._gates: dict[UUID, _Gate] = {}

    def admit(self, tenant_id: UUID, size: int, *, to_own_queue: bool) -> None:
        """Let one message of so many bytes pass. QueueOverloaded where a quota is used up, with when to come again;
        PayloadTooLarge where it can never pass; TenantSuspended; InvalidInput where there is no such tenant."""
        gate = self._gates.setdefault(tenant_id, _Gate())
        limits = self._limits(gate, tenant_id)
        with gate.lock:
            refusal = self._refusal(gate, limits, size, to_own_queue=to_own_queue)
        if refusal is not None:
            raise refusal

    def admit_each(self, tenant_id: UUID, sizes: Sequence[int], *, to_own_queue: bool) -> list[QueueError | None]:
        """As `admit` for messages of these sizes, one after the other: None for each that passes, or why it does not.
        One look at the tenant, however many they are."""
        gate = self._gates.setdefault(tenant_id, _Gate())
        try:
            limits = self._limits(gate, tenant_id)
        except QueueError as error:
            return [error] * len(sizes)
        with gate.lock:
            if limits.is_unlimited:
                return [None] * len(sizes)
            return [self._refusal(gate, limits, size, to_own_queue=to_own_queue) for size in sizes]

    def knows(self, tenant_id: UUID) -> bool:
        """Whether there is such a tenant, as far as was looked in the last seconds."""
        try:
            self._limits(self._gates.setdefault(tenant_id, _Gate()), tenant_id)
        except InvalidInput:
            del self._gates[tenant_id]
            return False
        return True

    def check(self, tenant_id: UUID, size: int, *, to_own_queue: bool) -> None:
        """Whether it would pass now: raises what `admit` would. Nothing is taken, nor counted as refused."""
        gate = self._gates.setdefault(tenant_id, _Gate())
        limits = self._limits(gate, tenant_id)
        with gate.lock:
            self._check(gate, limits, size, to_own_queue=to_own_queue)

    def published(self, tenant_id: UUID, size: int, messages: int = 1, *, to_own_queue: bool) -> None:
        """Count a message, or so many of that size in all, that were let pass and have been stored."""
        gate = self._gates.setdefault(tenant_id, _Gate())
        with gate.lock:
            gate.messages += messages
            gate.bytes += size
            if to_own_queue:
                gate.stored_here += size

    def usage(self, tenant_id: UUID) -> Usage:
        gate = self._gates.get(tenant_id) or _Gate()
        return Usage(self._since, gate.messages, gate.bytes, gate.refused)

    def look_again(self, tenant_id: UUID | None = None) -> None:
        """Read the limits of this tenant, or of all, before the next message passes."""
        for each, gate in list(self._gates.items()):
            if tenant_id in (None, each):
                gate.look_at_s = -math.inf

    def _limits(self, gate: _Gate, tenant_id: UUID) -> Limits:
        now_s = self._clock.monotonic()
        with gate.lock:
            if gate.limits is not None and now_s < gate.look_at_s:
                return gate.limits
            # Meanwhile others go on by what is known.
            gate.look_at_s = now_s + LOOK_EVERY_S
        try:
            limits = read_limits(tenant_id)
        except DatabaseError as error:
            limits = _known_so_far(gate, error)
        except BaseException:
            gate.look_at_s = -math.inf
            raise
        with gate.lock:
            self._enter(gate, limits, now_s)
        return limits

    def _enter(self, gate: _Gate, limits: Limits, now_s: float) -> None:
        quotas = limits.quotas
        gate.messages_bucket = _bucket(gate.messages_bucket, quotas.messages_per_s, quotas.messages_at_once, now_s)
        gate.bytes_bucket = _bucket(gate.bytes_bucket, quotas.bytes_per_s, quotas.bytes_at_once, now_s)
        if limits is not gate.limits:
            gate.limits, gate.stored_here = limits, 0

    def _refusal(self, gate: _Gate, limits: Limits, size: int, *, to_own_queue: bool) -> QueueError | None:
        """Let it pass, or say why not."""
        try:
            taken = self._check(gate, limits, size, to_own_queue=to_own_queue)
        except (QueueOverloaded, PayloadTooLarge, TenantSuspended) as error:
            gate.refused += 1
            return error
        for bucket, amount in taken:
            bucket.take(amount, self._clock.monotonic())
        return None

    def _check(self, gate: _Gate, limits: Limits, size: int, *, to_own_queue: bool) -> list[tuple[TokenBucket, int]]:
        """What the message would take from which bucket."""
        if limits.suspended_for:
            raise TenantSuspended(
                f"tenant {limits.name} is suspended, and nothing is published for it: {limits.suspended_for}; have it "
                "resumed first"
            )
        if to_own_queue:
            _check_stored(limits, limits.stored_bytes + gate.stored_here + size)
        now_s = self._clock.monotonic()
        wanted = [(gate.messages_bucket, 1, "messages_per_s"), (gate.bytes_bucket, size, "bytes_per_s")]
        for bucket, amount, quota in wanted:
            if bucket is not None and (wait_s := bucket.wait_s(amount, now_s)) > 0:
                raise _overloaded(limits, quota, size, wait_s)
        return [(bucket, amount) for bucket, amount, _ in wanted if bucket is not None]


def admission() -> Admission:
    """This process's."""
    return _process


def _forget_parent() -> None:
    """A process that was forked has published nothing yet, and holds no lock."""
    global _process
    _process = Admission()


_process = Admission()
os.register_at_fork(after_in_child=_forget_parent)


def _known_so_far(gate: _Gate, error: DatabaseError) -> Limits:
    """What is known is good enough while the database is away."""
    if gate.limits is None or connection.in_atomic_block:
        raise error
    connection.close()
    logger.warning("quotas of tenant %s are as they were: %s", gate.limits.name, " ".join(str(error).split()))
    return gate.limits


def _bucket(bucket: TokenBucket | None, rate_per_s: int | None, at_once: float, now_s: float) -> TokenBucket | None:
    if rate_per_s is None:
        return None
    if bucket is None:
        return TokenBucket(rate_per_s, at_once, now_s)
    bucket.change(rate_per_s, at_once, now_s)
    return bucket


def _check_stored(limits: Limits, would_be: int) -> None:
    most = limits.quotas.stored_bytes
    if most is not None and would_be > most:
        raise QueueOverloaded(
            f"the own queues of tenant {limits.name} would hold {would_be:,} bytes, and its quota stored_bytes is "
            f"{most:,}; wait until retention has removed some, or have the quota raised",
            quota="stored_bytes",
            retry_after_s=_FULL_RETRY_S,
        )


def _overloaded(limits: Limits, quota: str, size: int, wait_s: float) -> QueueOverloaded | PayloadTooLarge:
    quotas = limits.quotas
    if math.isinf(wait_s):
        return PayloadTooLarge(
            f"the payload has {size} bytes, and tenant {limits.name} may publish {quotas.bytes_at_once:.0f} at once "
            f"({quotas.bytes_per_s} each second, for {quotas.burst_s} s); send less, or have the quota raised"
        )
    return QueueOverloaded(
        f"tenant {limits.name} publishes more than its quota {quota} of {getattr(quotas, quota):,} allows; try again "
        f"in {math.ceil(wait_s * 10) / 10:.1f} s, or have the quota raised",
        quota=quota,
        retry_after_s=wait_s,
    )
