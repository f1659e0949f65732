"""A second queue for what failed: tried again there after a delay, a limited number of times, before it is given up.

It is how the housekeeper keeps its tasks: one that fails in `tb_housekeeper` goes to `tb_housekeeper.reprocessing`, so
that the tasks behind it need not wait. String headers tell how often it was tried, and what went wrong each time.
"""

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, Self

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.context import DeliveryContext, MessageHandler
from queuecore.consuming.delivering import is_async
from queuecore.deadletter.replay import REPLAY_GROUP
from queuecore.errors import ConfigurationError, GivenUp, UndecodableMessage
from queuecore.messages import Headers, OwnHeaders, Record

PREFIX: Final = "__queue.reprocessing."
ATTEMPT: Final = f"{PREFIX}attempt"
DUE_AT_MS: Final = f"{PREFIX}due.at.ms"
ERRORS: Final = f"{PREFIX}errors"

HOUSEKEEPER_REPROCESSING: Final = "HousekeeperReprocessing"

_LONGEST_NUMBER: Final = 18


@dataclass(frozen=True, slots=True)
class ReprocessingPolicy:
    """The policy.

    queue                 where messages that failed are tried again
    delay_ms              how long after its failure
    max_attempts          how often a message is tried there before it is given up
    max_errors            so many different errors are remembered, the newest
    max_error_characters  of each
    """

    queue: str = HOUSEKEEPER_REPROCESSING
    delay_ms: int = 3_000
    max_attempts: int = 10
    max_errors: int = 10
    max_error_characters: int = 1_024

    def __post_init__(self) -> None:
        if min(self.delay_ms, self.max_attempts) < 0 or min(self.max_errors, self.max_error_characters) < 1:
            raise ConfigurationError(
                f"delay_ms is {self.delay_ms}, max_attempts {self.max_attempts}, max_errors {self.max_errors} and "
                f"max_error_characters {self.max_error_characters}; use 0 or more for the first two, 1 or more for "
                "the others"
            )

    def after_failure(self, history: "History", error: BaseException, now_ms: int) -> "History | None":
        """How it goes on with a message that failed. None: it does not."""
        if history.attempt >= self.max_attempts:
            return None
        text = f"{type(error).__name__}: {error}"[: self.max_error_characters]
        errors = tuple(dict.fromkeys((*history.errors, text)))[-self.max_errors :]
        return History(history.attempt + 1, now_ms + self.delay_ms, errors)


@dataclass(frozen=True, slots=True)
class History:
    """What a message has been through. `attempt` 0 is the first, in the queue that it was published to."""

    attempt: int = 0
    due_at_ms: int = 0
    errors: tuple[str, ...] = ()

    @classmethod
    def of(cls, headers: Headers) -> Self:
        """What is missing, or anybody's nonsense, reads as nothing."""
        return cls(_number(headers.get(ATTEMPT)), _number(headers.get(DUE_AT_MS)), _texts(headers.get(ERRORS)))

    def headers(self) -> dict[str, bytes]:
        return {
            ATTEMPT: str(self.attempt).encode(),
            DUE_AT_MS: str(self.due_at_ms).encode(),
            ERRORS: json.dumps(self.errors).encode(),
        }


def reprocessed(
    handler: MessageHandler, policy: ReprocessingPolicy | None = None, clock: Clock = SYSTEM_CLOCK
) -> MessageHandler:
    """The handler for both queues: what it fails on is sent to the policy's queue, and there waits for its time. A
    message that was tried often enough raises GivenUp, and so becomes a dead letter with its whole history.

    A handler that overruns its time is beyond that: what becomes of its message is its queue's processing strategy's to
    say.
    """
    policy = policy or ReprocessingPolicy()
    return _Awaited(handler, policy, clock) if is_async(handler) else _Called(handler, policy, clock)


class _Reprocessing:
    def __init__(self, handler: MessageHandler, policy: ReprocessingPolicy, clock: Clock) -> None:
        self._handler = handler
        self._policy = policy
        self._clock = clock

    def _is_due(self, record: Record, context: DeliveryContext) -> bool:
        """Whether the message may be handled now; else it comes again when it is time."""
        # A due time that nobody would have set must not hold up the queue.
        due_at_ms = min(History.of(record.headers).due_at_ms, record.timestamp_ms + self._policy.delay_ms)
        early_ms = due_at_ms - self._clock.now_ms()
        if early_ms > 0:
            context.postpone(early_ms / 1000)
        return early_ms <= 0

    def _send_again(self, record: Record, context: DeliveryContext, error: Exception) -> None:
        """GivenUp where it has been tried often enough. What the handler had sent before it failed is not sent."""
        if isinstance(error, GivenUp | UndecodableMessage):
            raise error
        history = History.of(record.headers)
        if (next_try := self._policy.after_failure(history, error, self._clock.now_ms())) is None:
            raise GivenUp(
                f"failed {history.attempt + 1} times; the last time: {type(error).__name__}: {error}"
            ) from error
        context.unsend()
        headers = OwnHeaders({**record.headers, **next_try.headers()})
        # Whose turn it was: the second queue has a group of its own, which must not pass it over.
        headers.pop(REPLAY_GROUP, None)
        context.send(self._policy.queue, record.key, record.data, headers)


class _Called(_Reprocessing):
    def __call__(self, record: Record, context: DeliveryContext) -> Awaitable[None] | None:
        if not self._is_due(record, context):
            return None
        try:
            # What it returns should be nothing; who called sees to that.
            return self._handler(record, context)
        except Exception as error:
            self._send_again(record, context, error)
        return None


class _Awaited(_Reprocessing):
    async def __call__(self, record: Record, context: DeliveryContext) -> None:
        if not self._is_due(record, context):
            return
        try:
            handling = self._handler(record, context)
            if isinstance(handling, Awaitable):
                await handling
        except Exception as error:
            self._send_again(record, context, error)


def _number(raw: bytes | None) -> int:
    return int(raw) if raw and len(raw) <= _LONGEST_NUMBER and raw.isdigit() else 0


def _texts(raw: bytes | None) -> tuple[str, ...]:
    try:
        found = json.loads(raw or b"[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(text for text in found if isinstance(text, str)) if isinstance(found, list) else ()
