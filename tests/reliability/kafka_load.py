"""Load on queues that knows every acknowledged message, and those who read meanwhile."""

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from types import TracebackType
from typing import ClassVar, Final, Self, TypeVar

from queuecore import Queues
from queuecore.errors import NotOwner, ProviderUnavailable
from queuecore.messages import RecordMetadata
from queuecore.providers.base import Provider
from queuecore.testing import waiting
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo

_POLL_MS: Final = 100
# A few hundred messages a second: the brokers and this process share two cores.
_PAUSE_S: Final = 0.02

Found = TypeVar("Found")


class Background(ABC):
    """A thread that does the same again and again while the block lasts. What it raises ends it; the next `wait_until`
    raises that as well, or the end of the block."""

    # Those whose blocks last.
    running: ClassVar[list["Background"]] = []

    def __init__(self, name: str) -> None:
        self._enough = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name)

    @abstractmethod
    def turn(self) -> None:
        """What is done again and again."""

    def finish(self) -> None:  # noqa: B027 - there may be nothing to do
        """Called last, on the same thread."""

    def pause(self, seconds: float) -> None:
        """For that long, unless the block ends before."""
        self._enough.wait(seconds)

    def check(self) -> None:
        """Raises what ended it."""
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        self.running.append(self)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._enough.set()
        self._thread.join()
        self.running.remove(self)
        # The cause, where the block ends for something else that follows from it.
        if error is not self._failure:
            self.check()

    def _run(self) -> None:
        try:
            try:
                while not self._enough.is_set():
                    self.turn()
            finally:
                self.finish()
        except BaseException as error:
            self._failure = error


def wait_until(condition: Callable[[], Found], timeout: float = DEADLINE_S) -> Found:
    """As the ordinary one; but what ends a thread in the background ends the waiting at once."""

    def look() -> Found:
        for one in Background.running:
            one.check()
        return condition()

    return waiting.wait_until(look, timeout)


class Load(Background):
    """Publishes numbers that rise, for one key after the other, in messages of `size` bytes. Nothing is sent again that
    was refused."""

    def __init__(self, queues: Queues, queue: str, keys: int = 12, size: int = 0) -> None:
        super().__init__("load")
        self._queues = queues
        self._queue = queue
        self._size = size
        self._next = dict.fromkeys((f"key-{number}" for number in range(keys)), 0)
        self.acknowledged: set[bytes] = set()
        self.refusals: list[BaseException] = []
        # Messages that were not even taken.
        self.push_backs: list[ProviderUnavailable] = []

    def turn(self) -> None:
        for key, number in self._next.items():
            data = f"{key}:{number}".ljust(self._size).encode()
            try:
                stored = self._queues.publish(self._queue, key, data)
            except ProviderUnavailable as error:
                self.push_backs.append(error)
                continue
            stored.add_done_callback(partial(self._answered, data))
            self._next[key] = number + 1
        self.pause(_PAUSE_S)

    def finish(self) -> None:
        assert self._queues.flush(3 * DEADLINE_S)

    def _answered(self, data: bytes, stored: "Future[RecordMetadata]") -> None:
        if (error := stored.exception()) is None:
            self.acknowledged.add(data)
        else:
            self.refusals.append(error)


class Member(Background):
    """A consumer in a group that commits what it has handled."""

    def __init__(
        self, provider: Provider, group: str, infos: Sequence[TopicPartitionInfo], handled: list[bytes]
    ) -> None:
        super().__init__(f"member of {group}")
        self._handled = handled
        self._consumer = provider.consumer(group)
        self._consumer.subscribe(infos)

    def turn(self) -> None:
        try:
            self._handled += [record.data for record in self._consumer.poll(_POLL_MS)]
            self._consumer.commit()
        except (ProviderUnavailable, NotOwner):
            # Not committed, so it comes again: to this member or to another.
            self.pause(_PAUSE_S)

    def finish(self) -> None:
        self._consumer.stop()


class Observer(Background):
    """Asks an admin question all the time."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__("observer")
        self._ask = ask
        self.answers = 0

    def turn(self) -> None:
        try:
            self._ask()
            self.answers += 1
        except ProviderUnavailable:
            self.pause(_PAUSE_S)


def stored(provider: Provider, infos: Iterable[TopicPartitionInfo]) -> list[bytes]:
    """All that is committed there, partition by partition."""
    found: list[bytes] = []
    with closing(provider.reader()) as reader:
        for info in infos:
            at = 0
            while records := reader.read(info.place, at, 1_000):
                found += [record.data for record in records]
                at = records[-1].offset + 1
    return found


def out_of_order(messages: Iterable[bytes]) -> list[str]:
    """Keys whose messages do not rise. One that comes again is no matter."""
    numbers: dict[str, dict[int, None]] = defaultdict(dict)
    for message in messages:
        key, number = message.decode().split(":")
        numbers[key][int(number)] = None
    return [key for key, found in numbers.items() if list(found) != sorted(found)]
