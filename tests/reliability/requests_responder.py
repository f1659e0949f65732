"""`python -m tests.reliability.requests_responder CASE WHO`: answers requests, each as it asks to be, until its
standard input ends. Which it was given is in its journal."""

import asyncio
import random
import sys
import threading
from contextlib import closing
from typing import Final

from queuecore.errors import RequestFailed
from queuecore.providers.base import Provider
from queuecore.requests import Reply, Request, RequestHandler, ResponseTemplate
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.reliability.requests_case import RESPONDING, Case
from tests.reliability.requests_journal import Notes, Plan, What

REFUSED: Final = "as_planned"
_TOO_LARGE: Final = 3 * 1024 * 1024
_LONGEST_WORK_S: Final = 0.03


class Handling:
    """What one life does with requests."""

    def __init__(self, case: Case, who: str, notes: Notes) -> None:
        self._notes = notes
        self._chance = random.Random(f"{case.seed}/{who}")
        # Set when nobody hears the handlers any more.
        self.is_over = threading.Event()

    def on_thread(self, request: Request) -> Reply:
        plan = self._begin(request)
        if plan in (Plan.DAWDLE, Plan.HANG):
            wait_until(lambda: request.cancelled or self.is_over.is_set())
        else:
            self.is_over.wait(self._work_s())
        return _end(request, plan)

    async def in_task(self, request: Request) -> Reply:
        plan = self._begin(request)
        await asyncio.sleep(DEADLINE_S if plan in (Plan.DAWDLE, Plan.HANG) else self._work_s())
        return _end(request, plan)

    def _begin(self, request: Request) -> Plan:
        asker, number, plan = request.data.decode().split()
        self._notes.note(What.BEGUN, asker=asker, number=int(number))
        return Plan(plan)

    def _work_s(self) -> float:
        return self._chance.uniform(0, _LONGEST_WORK_S)


def _end(request: Request, plan: Plan) -> Reply:
    match plan:
        case Plan.REFUSE:
            raise RequestFailed("it was asked to refuse", error_code=REFUSED)
        case Plan.BREAK:
            raise ValueError("it was asked to break")
        case Plan.BLOAT:
            return bytes(_TOO_LARGE)
        case _:
            return request.data


class Responder:
    """One life. Every other one handles in tasks."""

    def __init__(self, case: Case, who: str, provider: Provider) -> None:
        self._notes = Notes(case.journals, who)
        self._handling = Handling(case, who, self._notes)
        life = int(who.rpartition(".")[2])
        handler: RequestHandler = self._handling.in_task if life % 2 else self._handling.on_thread
        self._template = ResponseTemplate(provider, case.topics, handler, RESPONDING)

    def start(self) -> None:
        self._template.start()
        self._notes.note(What.STARTED)

    def stop(self, timeout_s: float = 10.0) -> None:
        """In good order; with no time, as near to a crash as one gets without a process to kill."""
        self._template.stop(timeout_s)
        self._handling.is_over.set()
        self._notes.note(What.STOPPED)

    def close(self) -> None:
        self._notes.close()

    @property
    def is_running(self) -> bool:
        return self._template.is_running

    @property
    def notes(self) -> Notes:
        return self._notes


def main(case: Case, who: str) -> None:
    with closing(case.open()) as provider:
        responder = Responder(case, who, provider)
        threading.excepthook = responder.notes.note_broken
        responder.start()
        sys.stdin.read()
        assert responder.is_running, "it ended by itself"
        responder.stop()


if __name__ == "__main__":
    main(Case.of(sys.argv[1]), sys.argv[2])
