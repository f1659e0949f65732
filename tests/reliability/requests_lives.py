"""Those who ask and answer in a case: they are started, stopped, killed, suspended, and come again."""

import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from queuecore.providers.base import Provider
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.reliability.requests_case import Case
from tests.reliability.requests_journal import Journals, Notes, What
from tests.reliability.requests_requester import Requester
from tests.reliability.requests_responder import Responder

_ROOT = Path(__file__).parents[2]
# Longer than a caller waits for its last request.
_STOP_S = 2 * DEADLINE_S


def asks(member: str) -> bool:
    return member.startswith("ask")


class Lives(ABC):
    """Members by name, `ask-1` or `answer-1`; each has one life after the other: `ask-1.1`, `ask-1.2`, …"""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._notes = Notes(case.journals, "checker")
        self._counts: Counter[str] = Counter()
        self._journals = Journals(case.journals)
        self.present: dict[str, str] = {}

    def begin(self, member: str) -> str:
        """A new life, once it has begun."""
        self._counts[member] += 1
        self.present[member] = who = f"{member}.{self._counts[member]}"
        self._start(who)
        return who

    def wait_until_started(self, who: str) -> None:
        def has_started() -> bool:
            self.check()
            return any(event.who == who and event.what is What.STARTED for event in self._journals.events())

        wait_until(has_started, _STOP_S)

    def crash(self, member: str) -> None:
        """And come again."""
        who = self.present.pop(member)
        self._notes.note(What.KILLED, who)
        self._kill(who)
        self.wait_until_started(self.begin(member))

    def leave_all(self) -> None:
        """In good order, those who ask first, and each kind together."""
        for kind in (True, False):
            leaving = [self.present.pop(member) for member in list(self.present) if asks(member) is kind]
            for who in leaving:
                self._notes.note(What.STOPPING, who)
                self._tell(who)
            for who in leaving:
                self._stop(who)

    @abstractmethod
    def check(self) -> None:
        """AssertionError where one has ended by itself."""

    def close(self) -> None:
        """Whoever is left ends now."""
        self._notes.close()

    @abstractmethod
    def _start(self, who: str) -> None: ...

    @abstractmethod
    def _tell(self, who: str) -> None:
        """That it is to stop."""

    @abstractmethod
    def _stop(self, who: str) -> None:
        """Until it has, in good order."""

    @abstractmethod
    def _kill(self, who: str) -> None: ...


class Threads(Lives):
    """For a provider that has no other process. Who is stopped at once stands for one who is killed; who asks stops in
    good order even then."""

    def __init__(self, case: Case, provider: Provider) -> None:
        super().__init__(case)
        self._provider = provider
        self._running: dict[str, Requester | Responder] = {}

    def check(self) -> None:
        for who, one in self._running.items():
            assert not isinstance(one, Responder) or one.is_running, f"{who} ended by itself"

    def close(self) -> None:
        super().close()
        for who in list(self._running):
            self._kill(who)

    def _start(self, who: str) -> None:
        made = Requester if asks(who) else Responder
        one = self._running[who] = made(self._case, who, self._provider)
        one.start()

    def _tell(self, who: str) -> None:
        """They are stopped one after the other."""

    def _stop(self, who: str) -> None:
        one = self._running.pop(who)
        one.stop()
        one.close()

    def _kill(self, who: str) -> None:
        one = self._running.pop(who)
        if isinstance(one, Responder):
            one.stop(0)
        else:
            one.stop()
        one.close()


class Processes(Lives):
    """A process for each life."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._files = ExitStack()

    def suspend(self, member: str) -> None:
        self._notes.note(What.SUSPENDED, self.present[member])
        self._running[self.present[member]].send_signal(signal.SIGSTOP)

    def resume(self, who: str) -> None:
        self._running[who].send_signal(signal.SIGCONT)
        self._notes.note(What.RESUMED, who)

    def let_one_give_way(self, member: str, other: str) -> None:
        """Of two lives that run under one id, one ends in good order, and the other goes on. Which it is may depend: on
        Kafka, one that was silent for so long that it was forgotten takes its place back."""
        both = {self.present[member], other}
        gone = wait_until(lambda: [who for who in both if self._running[who].poll() is not None], _STOP_S)
        self._stop(gone[0])
        [self.present[member]] = both - {gone[0]}

    def check(self) -> None:
        for who in self.present.values():
            if (code := self._running[who].poll()) is not None:
                raise AssertionError(f"{who} ended by itself, with {code}: {self._said(who)}")

    def close(self) -> None:
        super().close()
        for who in list(self._running):
            self._kill(who)
        self._files.close()

    def _start(self, who: str) -> None:
        module = "tests.reliability.requests_requester" if asks(who) else "tests.reliability.requests_responder"
        program = [sys.executable, "-m", module, self._case.text(), who]
        errors = self._files.enter_context(self._errors(who).open("wb"))
        self._running[who] = subprocess.Popen(program, cwd=_ROOT, stdin=subprocess.PIPE, stderr=errors)

    def _tell(self, who: str) -> None:
        stdin = self._running[who].stdin
        assert stdin is not None
        stdin.close()

    def _stop(self, who: str) -> None:
        process = self._running[who]
        process.wait(_STOP_S)
        self._kill(who)
        assert process.returncode == 0, f"{who} ended with {process.returncode}: {self._said(who)}"

    def _kill(self, who: str) -> None:
        process = self._running.pop(who)
        process.kill()
        process.wait(DEADLINE_S)
        if process.stdin is not None:
            process.stdin.close()

    def _errors(self, who: str) -> Path:
        return self._case.journals / f"{who}.err"

    def _said(self, who: str) -> str:
        return self._errors(who).read_text()[-2_000:]
