"""Those who ask and those who answer, killed and suspended at random, and whether every future ends as it must."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.reliability.requests_case import SESSION_MS, Case
from tests.reliability.requests_journal import Journals, What
from tests.reliability.requests_judge import Story
from tests.reliability.requests_lives import Lives, Processes

ASKERS: Final = ("ask-1", "ask-2")
RESPONDERS: Final = ("answer-1", "answer-2", "answer-3")
# Longer than a session, and than what some requests wait.
SUSPENDED_S: Final = SESSION_MS / 1000 + 0.5
_MOST_BETWEEN: Final = 60

Action = Literal["kill who asks", "kill who answers", "suspend who asks", "suspend who answers", "replace who asks"]
KILLS: Final[tuple[Action, ...]] = ("kill who asks", "kill who answers")
ACTIONS: Final[tuple[Action, ...]] = (
    *KILLS, "suspend who asks", "suspend who answers", "replace who asks", "kill who answers",
)  # fmt: skip


class Check:
    """One case, from the first request to the story of all of them."""

    def __init__(self, case: Case, lives: Lives) -> None:
        self._lives = lives
        self._journals = Journals(case.journals)
        self._chance = random.Random(f"{case.seed}/checker")

    def run(self, actions: Sequence[Action], rounds: int) -> Story:
        """Each action so often, in any order, each when some more requests have ended than before."""
        planned = [*actions] * rounds
        self._chance.shuffle(planned)
        try:
            # Those who answer create the topic of the requests.
            for members in (RESPONDERS, ASKERS):
                for who in [self._lives.begin(member) for member in members]:
                    self._lives.wait_until_started(who)
            for action in planned:
                self._wait_for_more(self._chance.randint(1, _MOST_BETWEEN))
                self._do(action)
            self._wait_for_more(_MOST_BETWEEN)
            self._lives.leave_all()
        finally:
            self._lives.close()
        return Story(self._journals.events())

    def _do(self, action: Action) -> None:
        member = self._chance.choice(ASKERS if action.endswith("asks") else RESPONDERS)
        if action in KILLS:
            self._lives.crash(member)
            return
        assert isinstance(self._lives, Processes)
        who = self._lives.present[member]
        self._lives.suspend(member)
        if action == "replace who asks":
            self._lives.wait_until_started(self._lives.begin(member))
            self._wait_for_more(1, of=self._lives.present[member])
            self._lives.resume(who)
            self._lives.let_one_give_way(member, who)
            return
        until = time.monotonic() + SUSPENDED_S
        self._wait_until(lambda: time.monotonic() >= until)
        self._lives.resume(who)

    def _wait_for_more(self, count: int, of: str = "") -> None:
        """Until so many more requests have ended, of one life or of any."""
        wanted = self._ended(of) + count
        self._wait_until(lambda: self._ended(of) >= wanted)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        def look() -> bool:
            self._lives.check()
            broken = [event for event in self._journals.events() if event.what is What.BROKEN]
            assert not broken, f"a thread of {broken[0].who} died of {broken[0].outcome}"
            return condition()

        wait_until(look, DEADLINE_S)

    def _ended(self, of: str) -> int:
        events = self._journals.events()
        return sum(event.what is What.ENDED and of in ("", event.who) for event in events)
