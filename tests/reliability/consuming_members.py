"""Those who consume in a case: they join, leave and crash."""

import multiprocessing
import signal
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

from queuecore.consuming.consumption import Consumption
from queuecore.providers.base import Provider
from queuecore.testing.waiting import DEADLINE_S
from tests.reliability.consuming_case import Case, Journal
from tests.reliability.consuming_judge import What
from tests.reliability.consuming_worker import STOP_S, consumption, work

# Workers are forked from a process that has what they need, and nothing open.
_WORKERS = multiprocessing.get_context("forkserver")
_WORKERS.set_forkserver_preload(["__main__", "tests.reliability.consuming_worker", "queuecore.providers.kafka"])


class Members(ABC):
    """Those who consume. A member that crashes or leaves may come again, as another life: `a.1`, `a.2`, …"""

    def __init__(self, case: Case, provider: Provider) -> None:
        self._case = case
        self._provider = provider
        self._journal = Journal(case.journal)
        self._lives: Counter[str] = Counter()
        self._names: dict[str, str] = {}

    @property
    def present(self) -> list[str]:
        return sorted(self._names)

    def join(self, member: str) -> None:
        self._lives[member] += 1
        self._names[member] = who = f"{member}.{self._lives[member]}"
        self._start(who)

    def leave(self, member: str) -> None:
        """One that is killed by a message meanwhile comes again for it: nobody shall wait until its session ends."""
        while not self._stop(self._names[member]):
            self.crash(member)
        del self._names[member]

    def crash(self, member: str) -> None:
        """And come again."""
        who = self._names.pop(member)
        self._kill(who)
        self._journal.note(What.CRASHED, who)
        self.join(member)

    def close(self) -> None:
        """All leave, whatever becomes of one of them."""
        with ExitStack() as leaving:
            leaving.callback(self._journal.close)
            for member in self.present:
                leaving.callback(self.leave, member)

    @abstractmethod
    def check(self) -> None:
        """AssertionError where one has ended by itself. One that was killed by a message comes again."""

    @abstractmethod
    def _start(self, who: str) -> None: ...

    @abstractmethod
    def _stop(self, who: str) -> bool:
        """False: it was killed by a message first."""

    @abstractmethod
    def _kill(self, who: str) -> None: ...


class Threads(Members):
    """Consumptions of this process, for a provider that has no other. What gives way at once stands for a crash."""

    def __init__(self, case: Case, provider: Provider) -> None:
        super().__init__(case, provider)
        self._running: dict[str, Consumption] = {}

    def check(self) -> None:
        for who, one in self._running.items():
            assert one.error is None, f"{who} ended: {one.error!r}"

    def _start(self, who: str) -> None:
        self._running[who] = consumption(self._case, self._provider, self._journal, who)
        self._running[who].start()

    def _stop(self, who: str) -> bool:
        assert self._running.pop(who).stop(STOP_S), f"{who} did not drain"
        return True

    def _kill(self, who: str) -> None:
        self._running.pop(who).abandon()


class Processes(Members):
    """A process for each life. Crashes are kill -9."""

    def __init__(self, case: Case, provider: Provider) -> None:
        super().__init__(case, provider)
        self._running: dict[str, tuple[ForkServerProcess, Connection]] = {}

    def check(self) -> None:
        for member in self.present:
            process, _ = self._running[self._names[member]]
            if (code := process.exitcode) == -signal.SIGKILL:
                self.crash(member)
            else:
                assert code is None, f"{process.name} ended with {code}"

    def _start(self, who: str) -> None:
        ours, theirs = _WORKERS.Pipe()
        process = _WORKERS.Process(target=work, args=(theirs, self._case, who), name=who, daemon=True)
        process.start()
        theirs.close()
        self._running[who] = (process, ours)

    def _stop(self, who: str) -> bool:
        process, connection = self._running[who]
        with suppress(BrokenPipeError):
            connection.send("stop")
        process.join(DEADLINE_S)
        if (code := process.exitcode) == -signal.SIGKILL:
            return False
        self._kill(who)
        assert code == 0, f"{who} ended with {code}"
        return True

    def _kill(self, who: str) -> None:
        process, connection = self._running.pop(who)
        process.kill()
        process.join(DEADLINE_S)
        connection.close()
