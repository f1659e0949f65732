"""`python -m tests.reliability.requests_requester CASE WHO`: asks until its standard input ends, or until another life
has taken its place. What it asked, and how that ended, is in its journal."""

import sys
import threading
from contextlib import closing
from dataclasses import asdict

from queuecore.providers.base import Provider
from queuecore.requests import RequestTemplate
from tests.reliability.requests_callers import Callers
from tests.reliability.requests_case import REQUESTING, Case
from tests.reliability.requests_journal import Notes, What

_LOOK_EVERY_S = 0.05


class Requester:
    """One life, which is called `service id.life`."""

    def __init__(self, case: Case, who: str, provider: Provider) -> None:
        self._notes = Notes(case.journals, who)
        service_id, _, life = who.rpartition(".")
        # Every third stops with requests that wait.
        self._is_hasty = int(life) % 3 == 0
        self._template = RequestTemplate(provider, case.topics, service_id, REQUESTING)
        self._callers = Callers(case.seed, who, self._template, self._notes)

    def start(self) -> None:
        self._template.start()
        self._notes.note(What.STARTED)
        self._callers.start()

    def stop(self) -> None:
        """In good order: every request has ended, and every caller knows how."""
        self._callers.stop()
        if self._is_hasty:
            self._template.stop()
        self._callers.join()
        self._template.stop()
        counts = {name: value for name, value in asdict(self._template.counts).items() if isinstance(value, int)}
        self._notes.note(What.STOPPED, counts=counts)

    def close(self) -> None:
        self._notes.close()

    @property
    def is_displaced(self) -> bool:
        return self._template.error is not None

    @property
    def notes(self) -> Notes:
        return self._notes


def main(case: Case, who: str) -> None:
    with closing(case.open()) as provider:
        requester = Requester(case, who, provider)
        threading.excepthook = requester.notes.note_broken
        requester.start()
        told = threading.Thread(target=sys.stdin.read, daemon=True)
        told.start()
        while told.is_alive() and not requester.is_displaced:
            told.join(_LOOK_EVERY_S)
        requester.stop()


if __name__ == "__main__":
    main(Case.of(sys.argv[1]), sys.argv[2])
