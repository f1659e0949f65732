"""Letters made of messages that are given up."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.deadletter.attempts import FailedAttempt
from queuecore.deadletter.envelope import FailureStory, Stage, describe_exception, replay_count_of, to_letter
from queuecore.deadletter.policy import DeadLetterPolicy
from queuecore.messages import TENANT_ID, Record, text_header
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo, dead_letter_partition

_DEFAULT_POLICY: Final = DeadLetterPolicy()
# A tenant's id is a UUID, but its header is anybody's bytes.
_MAX_TENANT_CHARACTERS: Final = 100


def letter_target(info: TopicPartitionInfo, policy: DeadLetterPolicy = _DEFAULT_POLICY) -> TopicPartitionInfo:
    """Where letters of a queue's partition go: the same partition of its dead-letter topic, or of the policy's own; and
    where that topic has fewer, always the same one of them."""
    if policy.partitions and info.partition is not None:
        info = replace(info, partition=info.partition % policy.partitions)
    if not policy.topic:
        return dead_letter_partition(info)
    return TopicPartitionInfo(policy.topic, info.partition, use_internal_partition=True)


class LetterWriter:
    """Makes the letters of one consumption. Safe from any thread."""

    def __init__(
        self,
        queue_id: str,
        group: str,
        handler: str,
        service_id: str = "",
        policy: DeadLetterPolicy = _DEFAULT_POLICY,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._queue_id = queue_id
        self._group = group
        self._handler = handler
        self._service_id = service_id
        self._policy = policy
        self._clock = clock

    def write(
        self,
        info: TopicPartitionInfo,
        record: Record,
        error: BaseException,
        *,
        reason: str,
        stage: Stage = Stage.HANDLE,
        attempts: int,
        first_failed_at_ms: int = 0,
        failures: Sequence[FailedAttempt] = (),
        epoch: int | None = None,
    ) -> Addressed:
        """The letter for a record of this partition, addressed and not yet sent. Without the time of an earlier
        failure, this is the first; `failures` are all of them. `epoch` is that of the partition's assignment, where it
        has one."""
        now_ms = self._clock.now_ms()
        story = FailureStory(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            queue_id=self._queue_id,
            group=self._group,
            handler=self._handler,
            reason=reason,
            attempts=attempts,
            first_failed_at_ms=first_failed_at_ms or now_ms,
            failed_at_ms=now_ms,
            tenant_id=_tenant_of(info, record),
            service_id=self._service_id,
            stage=stage,
            replay_count=replay_count_of(record.headers),
            epoch=epoch,
            failures=tuple(failures),
            **describe_exception(error),
        )
        return Addressed(letter_target(info, self._policy), to_letter(record, story))


def _tenant_of(info: TopicPartitionInfo, record: Record) -> str:
    """Whom the message names, else whose partition it is."""
    named = text_header(record.headers, TENANT_ID)
    return named[:_MAX_TENANT_CHARACTERS] if named else str(info.tenant_id or "")
