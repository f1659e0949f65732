"""Requests that come while others are being answered, answered together.

A thread for each would have what they need looked up and waited for once for each, and the threads would wait for the
interpreter more than for the disk. Whoever comes alone waits for nobody.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final, Generic, TypeVar

# One waits for the disk while another is made ready.
_ROUNDS_AT_ONCE: Final = 2
_MOST_IN_ROUND: Final = 100

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Gathering(Generic[Asked, Answer]):
    """Rounds of requests of the same kind, of which each kind has few under way: one that is stuck holds up no other
    kind. For one event loop."""

    def __init__(self, threads: Executor, answer: Callable[[Sequence[Asked]], Sequence[Answer]]) -> None:
        """`answer` is called on one of the threads, and answers each in their order."""
        self._threads = threads
        self._answer = answer
        self._waiting: defaultdict[str, list[tuple[Asked, asyncio.Future[Answer]]]] = defaultdict(list)
        self._rounds: defaultdict[str, int] = defaultdict(int)

    async def ask(self, kind: str, asked: Asked) -> Answer:
        """Raises what the whole round came to nothing with."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[kind].append((asked, answered))
        if self._rounds[kind] < _ROUNDS_AT_ONCE:
            self._rounds[kind] += 1
            self._begin(kind)
        return await answered

    def _begin(self, kind: str) -> None:
        waiting = self._waiting[kind]
        taken, waiting[:] = waiting[:_MOST_IN_ROUND], waiting[_MOST_IN_ROUND:]
        done = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, [asked for asked, _ in taken])
        done.add_done_callback(partial(self._settle, kind, [answered for _, answered in taken]))

    def _settle(
        self, kind: str, waiting: "list[asyncio.Future[Answer]]", done: "asyncio.Future[Sequence[Answer]]"
    ) -> None:
        if self._waiting[kind]:
            self._begin(kind)
        else:
            self._end(kind)
        for index, answered in enumerate(waiting):
            # Not where its client has gone.
            if not answered.done():
                _pass_on(done, answered, index)

    def _end(self, kind: str) -> None:
        self._rounds[kind] -= 1
        if not self._rounds[kind]:
            del self._rounds[kind], self._waiting[kind]


def _pass_on(done: "asyncio.Future[Sequence[Answer]]", answered: "asyncio.Future[Answer]", index: int) -> None:
    if done.cancelled():
        answered.cancel()
    elif error := done.exception():
        answered.set_exception(error)
    else:
        answered.set_result(done.result()[index])
