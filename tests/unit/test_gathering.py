"""Requests that come while others are being answered are answered together; whoever comes alone waits for nobody."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from console.gathering import Gathering


class ByHand(Executor):
    """Does nothing until it is told to."""

    def __init__(self) -> None:
        self.rounds: list[tuple[Future[Any], Sequence[str]]] = []

    def submit(self, fn: Any, /, *args: Any, **_: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        self.rounds.append((done, args[0]))
        return done

    @property
    def begun(self) -> list[list[str]]:
        return [list(asked) for _, asked in self.rounds]

    def answer(self, number: int) -> None:
        done, asked = self.rounds[number]
        done.set_result([one.upper() for one in asked])


@pytest.fixture
def threads() -> ByHand:
    return ByHand()


def gathering(threads: ByHand) -> Gathering[str, str]:
    return Gathering(threads, lambda asked: [one.upper() for one in asked])


async def begin(asking: Gathering[str, str], *asked: str, kind: str = "a") -> "list[asyncio.Task[str]]":
    tasks = [asyncio.create_task(asking.ask(kind, one)) for one in asked]
    await asyncio.sleep(0)
    return tasks


def test_what_comes_while_two_rounds_are_under_way_is_the_next_one(threads: ByHand) -> None:
    async def story() -> None:
        asking = gathering(threads)
        first, second, *others = await begin(asking, "a", "b", "c", "d", "e")
        assert threads.begun == [["a"], ["b"]]
        threads.answer(0)
        assert await first == "A"
        assert threads.begun[2:] == [["c", "d", "e"]]
        threads.answer(2)
        assert await asyncio.gather(*others) == ["C", "D", "E"]
        threads.answer(1)
        assert await second == "B"
        assert len(threads.rounds) == 3

    asyncio.run(story())


def test_one_kind_does_not_wait_for_another(threads: ByHand) -> None:
    async def story() -> None:
        asking = gathering(threads)
        await begin(asking, "a", "b", "c")
        [other] = await begin(asking, "x", kind="b")
        assert threads.begun == [["a"], ["b"], ["x"]]
        threads.answer(2)
        assert await other == "X"

    asyncio.run(story())


def test_a_round_that_fails_is_told_to_each_and_the_next_begins(threads: ByHand) -> None:
    async def story() -> None:
        asking = gathering(threads)
        first, _, third, gone = await begin(asking, "a", "b", "c", "d")
        gone.cancel()
        threads.rounds[0][0].set_exception(OSError("the disk is full"))
        with pytest.raises(OSError, match="the disk is full"):
            await first
        threads.rounds[2][0].set_exception(OSError("still"))
        with pytest.raises(OSError, match="still"):
            await third
        with pytest.raises(asyncio.CancelledError):
            await gone
        [again] = await begin(asking, "e")
        threads.answer(3)
        assert await again == "E"

    asyncio.run(story())
