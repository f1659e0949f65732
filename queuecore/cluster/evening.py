"""Who gets what is left over, where several might: whoever has least beside its share, over all pools.

Each choice alone gives to those who have least. That is the best there is for one choice, but not for several, as a
later one may leave no way to make up for an earlier one. So chains are looked for: a service with too much passes one
on in one choice, who gets it passes one on in another, until it is with one that has at least one less. The sum of
squares of the excesses is convex, so when no such chain is left, it is the smallest there is.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Final, NamedTuple

# What rounding errors of floats may look like.
_TINY: Final = 1e-9
# With hundreds of overlapping choices the last chains take longer to find than they are worth. Usual are one or two.
_ROUNDS: Final = 10


class Choice(NamedTuple):
    """`number` of these services are to be chosen."""

    candidates: list[str]
    number: int


class _Step(NamedTuple):
    """`giver` passes one on in that choice."""

    giver: str
    choice: int


def choose(choices: Sequence[Choice], excess: dict[str, float]) -> list[set[str]]:
    """The chosen services of each choice. `excess`, what each has beside its share, is brought up to date."""
    chosen: list[set[str]] = [set() for _ in choices]
    is_free = [choice.number < len(choice.candidates) for choice in choices]
    # Where there is nothing to choose comes first, and then where there is little.
    for index in sorted(range(len(choices)), key=lambda index: (is_free[index], len(choices[index].candidates))):
        candidates, number = choices[index]
        chosen[index].update(sorted(candidates, key=lambda service: (excess[service], service))[:number])
        for service in chosen[index]:
            excess[service] += 1
    if sum(is_free) > 1:
        _Chains(choices, chosen, excess, compress(range(len(choices)), is_free)).pass_on()
    return chosen


class _Chains:
    def __init__(
        self, choices: Sequence[Choice], chosen: list[set[str]], excess: dict[str, float], free: Iterable[int]
    ) -> None:
        self._choices = choices
        self._chosen = chosen
        self._excess = excess
        self._chosen_in: dict[str, set[int]] = defaultdict(set)
        for index in free:
            for service in chosen[index]:
                self._chosen_in[service].add(index)

    def pass_on(self) -> None:
        """Until there is no chain, or it has taken long enough."""
        for _ in range(_ROUNDS):
            if not self._pass_some_on():
                break

    def _pass_some_on(self) -> bool:
        """False where there was no chain from anybody.

        Those with most come first: whom one of them reaches has no chain either if it has none, having less to give
        and fewer to give it to.
        """
        done: set[str] = set()
        found = False
        for service in sorted(self._chosen_in, key=lambda service: (-self._excess[service], service)):
            while service not in done:
                reached = self._reached(service)
                last = next(reversed(reached))
                if self._has_less(last, service):
                    self._hand_over(service, last, reached)
                    found = True
                else:
                    done.update(reached)
        return found

    def _has_less(self, other: str, service: str) -> bool:
        """So that it gets more even when one goes from the service to the other."""
        return self._excess[other] + 1 + _TINY < self._excess[service]

    def _reached(self, start: str) -> dict[str, _Step | None]:
        """Whom chains from `start` lead to, each with the last step to it. Ends with the first that has less, if any.

        Takes each choice once: the second giver reaches nobody new there.
        """
        reached: dict[str, _Step | None] = {start: None}
        waiting, seen = deque([start]), set[int]()
        while waiting:
            giver = waiting.popleft()
            for choice in sorted(self._chosen_in[giver] - seen):
                seen.add(choice)
                for taker in self._choices[choice].candidates:
                    if taker in reached or taker in self._chosen[choice]:
                        continue
                    reached[taker] = _Step(giver, choice)
                    if self._has_less(taker, start):
                        return reached
                    waiting.append(taker)
        return reached

    def _hand_over(self, start: str, end: str, reached: dict[str, _Step | None]) -> None:
        self._excess[start] -= 1
        self._excess[end] += 1
        while (step := reached[end]) is not None:
            self._chosen[step.choice].remove(step.giver)
            self._chosen[step.choice].add(end)
            self._chosen_in[step.giver].remove(step.choice)
            self._chosen_in[end].add(step.choice)
            end = step.giver
