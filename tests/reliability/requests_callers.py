"""Those who ask through one template, in every way that one can: threads that wait, callbacks, and tasks that await."""

import asyncio
import itertools
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from queuecore.errors import QueueError, RequestFailed
from queuecore.messages import QueueMessage
from queuecore.requests import RequestTemplate, ResponseFuture
from queuecore.testing.waiting import DEADLINE_S
from tests.reliability.requests_case import HANDLER_MS, LONG_MS, MAX_PENDING
from tests.reliability.requests_journal import Notes, Plan, What

_THREADS: Final = 3
_TASKS: Final = 4
_LONGEST_PAUSE_S: Final = 0.06
_LARGEST_BURST: Final = MAX_PENDING + 15
_PLANS: Final = {Plan.REPLY: 60, Plan.REFUSE: 6, Plan.BREAK: 6, Plan.BLOAT: 3, Plan.DAWDLE: 8, Plan.HANG: 2}
_CANCELS: Final = 0.1


def outcome_of(error: BaseException | None) -> str:
    if error is None:
        return "answer"
    if isinstance(error, RequestFailed):
        return f"{error.code}/{error.error_code}"
    return error.code if isinstance(error, QueueError) else f"untyped {type(error).__name__}"


def _release(ended: threading.Semaphore, _future: ResponseFuture) -> None:
    ended.release()


class Callers:
    """They ask until they are stopped, and note each request before it is sent and when it has ended."""

    def __init__(self, seed: str, who: str, template: RequestTemplate, notes: Notes) -> None:
        self._seed = f"{seed}/{who}"
        self._who = who
        self._template = template
        self._notes = notes
        self._numbers = itertools.count()
        self._enough = threading.Event()
        kinds = [*[self._wait] * _THREADS, self._call_back, self._run_tasks]
        self._threads = [self._thread(kind, number) for number, kind in enumerate(kinds)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._enough.set()

    def join(self) -> None:
        """Until all have heard how their last requests ended."""
        for thread in self._threads:
            thread.join(2 * DEADLINE_S)
            assert not thread.is_alive(), f"{thread.name} still waits for its request"

    def _thread(self, run: Callable[[random.Random], None], number: int) -> threading.Thread:
        name = f"{self._who}-caller-{number}"
        return threading.Thread(target=run, args=(random.Random(f"{self._seed}/{name}"),), name=name, daemon=True)

    def _ask(self, chance: random.Random) -> tuple[int, ResponseFuture]:
        number = next(self._numbers)
        [plan] = chance.choices(list(_PLANS), list(_PLANS.values()))
        is_short = plan is Plan.DAWDLE or (plan is not Plan.HANG and chance.random() < 0.2)
        timeout_ms = chance.randint(100, HANDLER_MS // 3) if is_short else LONG_MS
        self._notes.note(What.SENT, asker=self._who, number=number, plan=plan, timeout_ms=timeout_ms)
        key = chance.choice([None, b"one", b"another"])
        payload = f"{self._who} {number} {plan}".encode()
        future = self._template.send(QueueMessage(key, payload), timeout_ms=timeout_ms)
        future.add_done_callback(lambda ended: self._note_end(number, ended))
        return number, future

    def _note_end(self, number: int, future: ResponseFuture) -> None:
        error = future.exception(0)
        answer = "" if error is not None else "/".join(future.result(0).data[:200].decode().split()[:2])
        self._notes.note(What.ENDED, asker=self._who, number=number, outcome=outcome_of(error), answer=answer)

    def _told(self, number: int, error: BaseException | None) -> None:
        self._notes.note(What.TOLD, asker=self._who, number=number, outcome=outcome_of(error))

    def _cancel(self, number: int, future: ResponseFuture) -> None:
        if future.cancel():
            self._notes.note(What.CANCELLED, asker=self._who, number=number)

    def _wait(self, chance: random.Random) -> None:
        while not self._enough.wait(chance.uniform(0, _LONGEST_PAUSE_S)):
            number, future = self._ask(chance)
            if chance.random() < _CANCELS:
                self._enough.wait(chance.uniform(0, _LONGEST_PAUSE_S))
                self._cancel(number, future)
            self._told(number, future.exception(2 * DEADLINE_S))

    def _call_back(self, chance: random.Random) -> None:
        """Burst after burst, each when the one before has ended."""
        while not self._enough.wait(chance.uniform(0, 10 * _LONGEST_PAUSE_S)):
            size = chance.randint(1, _LARGEST_BURST)
            ended = threading.Semaphore(0)
            for _ in range(size):
                number, future = self._ask(chance)
                future.add_done_callback(partial(_release, ended))
                if chance.random() < _CANCELS:
                    self._cancel(number, future)
            for _ in range(size):
                assert ended.acquire(timeout=2 * DEADLINE_S), "a callback never ran"

    def _run_tasks(self, chance: random.Random) -> None:
        asyncio.run(self._ask_in_tasks(chance))

    async def _ask_in_tasks(self, chance: random.Random) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_TASKS):
                tasks.create_task(self._await(chance))

    async def _await(self, chance: random.Random) -> None:
        while not self._enough.is_set():
            await asyncio.sleep(chance.uniform(0, _LONGEST_PAUSE_S))
            number, future = self._ask(chance)
            try:
                if chance.random() < _CANCELS:
                    await self._await_briefly(number, future, chance.uniform(0, _LONGEST_PAUSE_S))
                else:
                    await future
            except QueueError as error:
                self._told(number, error)
            else:
                # Too late to be cancelled, it may be about to end.
                self._told(number, future.exception(DEADLINE_S))

    async def _await_briefly(self, number: int, future: ResponseFuture, patience_s: float) -> None:
        """A task that is cancelled cancels what it awaits."""
        try:
            async with asyncio.timeout(patience_s):
                await future
        except TimeoutError:
            if future.cancelled():
                self._notes.note(What.CANCELLED, asker=self._who, number=number)
