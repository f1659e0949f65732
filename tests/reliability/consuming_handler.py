"""A handler that fails, overruns its time and kills its process as a seed says, and notes when it begins and ends."""

import asyncio
import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from typing import Final

from queuecore.consuming.context import DeliveryContext, MessageHandler, Payload
from queuecore.errors import UndecodableMessage
from queuecore.hashing import Entity
from queuecore.messages import NO_HEADERS, Headers, QueueMessage, Record
from queuecore.sending import Addressed
from queuecore.topics import TopicPartitionInfo
from tests.reliability.consuming_case import TIMEOUT_MS, Case, Journal
from tests.reliability.consuming_judge import What

# The longest that one works which ends in time.
_WORK_S: Final = 0.004
_PATIENCE_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.02


class Misbehaved(Exception):
    """A handler's failure, as the seed wants it."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How handlers end: the same for the same seed, message and attempt."""

    case: Case

    def ending(self, number: int, attempt: int) -> What:
        if number in self.case.deadly:
            return What.CRASHED
        return What.SUCCEEDED if self.case.calm else self._random_ending(number, attempt)

    @property
    def overruns_by_s(self) -> float:
        """How long one whose time is up goes on if nobody tells it."""
        return _PATIENCE_S if self.case.processing.cancels_overruns else TIMEOUT_MS / 1000

    def takes_s(self, number: int, attempt: int) -> float:
        if self.ending(number, attempt) is What.TIMED_OUT:
            return TIMEOUT_MS / 1000
        return random.Random(f"{self.case.seed}/{number}/{attempt}/s").uniform(0, _WORK_S)

    def _random_ending(self, number: int, attempt: int) -> What:
        """Some messages fail again and again, some now and then."""
        character = random.Random(f"{self.case.seed}/{number}").random()
        if character < 0.04:
            return What.UNDECODABLE
        if character < 0.08:
            return What.FAILED
        mood = random.Random(f"{self.case.seed}/{number}/{attempt}").random()
        return What.FAILED if mood < 0.12 else What.TIMED_OUT if mood < 0.16 else What.SUCCEEDED


class Handling:
    """One message with its handler, from the first line to the last."""

    def __init__(
        self, behaviour: Behaviour, journal: Journal, who: str, record: Record, context: DeliveryContext
    ) -> None:
        number = int(record.data)
        self._where = (who, context.partition, number, context.attempt)
        self._journal = journal
        self._context = context
        self._ending = behaviour.ending(number, context.attempt)
        self.takes_s = behaviour.takes_s(number, context.attempt)
        self.overruns_by_s = behaviour.overruns_by_s
        journal.note(What.BEGUN, *self._where)
        if self._ending is What.CRASHED:
            os.kill(os.getpid(), signal.SIGKILL)
        context.send("output", None, record.data)

    @property
    def overruns(self) -> bool:
        """Also where it did not mean to: from then on it could end either way."""
        return self._ending is What.TIMED_OUT or self._context.remaining_s == 0

    def wait_to_be_told(self) -> None:
        """That its time is up; and a little longer."""
        until = time.monotonic() + self.overruns_by_s
        while not self._context.cancelled and time.monotonic() < until:
            _wait(_LOOK_EVERY_S)
        _wait(_LOOK_EVERY_S)

    def end(self) -> None:
        if self.overruns:
            self._ending = What.TIMED_OUT
        self._journal.note(self._ending, *self._where)
        if self._ending is What.UNDECODABLE:
            raise UndecodableMessage("it cannot be decoded, as its seed says")
        if self._ending is What.FAILED:
            raise Misbehaved("it fails, as its seed says")


def handler(case: Case, journal: Journal, who: str) -> MessageHandler:
    """Half of all cases have one that is to be awaited."""
    behaviour = Behaviour(case)

    def handle(record: Record, context: DeliveryContext) -> None:
        handling = Handling(behaviour, journal, who, record, context)
        _wait(handling.takes_s)
        if handling.overruns:
            handling.wait_to_be_told()
        handling.end()

    async def handle_async(record: Record, context: DeliveryContext) -> None:
        handling = Handling(behaviour, journal, who, record, context)
        try:
            await asyncio.sleep(handling.takes_s)
            if handling.overruns:
                await asyncio.sleep(handling.overruns_by_s)
        finally:
            handling.end()

    return handle_async if random.Random(case.seed).random() < 0.5 else handle


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


@dataclass(frozen=True, slots=True)
class ToOutput:
    """Handlers have one place to send to."""

    output: TopicPartitionInfo

    def compose(self, queue: str, entity: Entity | None, payload: Payload, headers: Headers = NO_HEADERS) -> Addressed:
        assert isinstance(payload, bytes)
        return Addressed(self.output, QueueMessage(None, payload, headers))
