"""What strategies mean, drawn: three messages of which the first fails. Two are of one entity and tenant, the third is
of others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from queuecore.processing.strategies import ProcessingStrategyType as Processing
from queuecore.submit.strategies import SubmitStrategyType as Submit

MESSAGES: Final = ("A1", "A2", "B1")
_FIRST: Final = 0

SUBMIT_MEANS: Final[Mapping[Submit, str]] = {
    Submit.BURST: "All messages of a pack at once, in no promised order.",
    Submit.BATCH: "As many at once as a batch holds, here two; the next batch when this one is done.",
    Submit.SEQUENTIAL: "One after the other.",
    Submit.SEQUENTIAL_BY_ORIGINATOR: "Those of one entity one after the other, entities side by side.",
    Submit.SEQUENTIAL_BY_TENANT: "Those of one tenant one after the other, tenants side by side.",
}
PROCESSING_MEANS: Final[Mapping[Processing, str]] = {
    Processing.SKIP_ALL_FAILURES: "What fails or times out is given up; a handler whose time is up may go on.",
    Processing.SKIP_ALL_FAILURES_AND_TIMED_OUT: "What fails or times out is given up; a late handler is told to stop.",
    Processing.RETRY_ALL: "The whole pack is tried again, whoever failed.",
    Processing.RETRY_FAILED: "What fails is tried again; what times out is given up.",
    Processing.RETRY_TIMED_OUT: "What times out is tried again; what fails is given up.",
    Processing.RETRY_FAILED_AND_TIMED_OUT: "What fails or times out is tried again.",
}
# When each message is first handed over, if nothing holds it back, and behind which others it waits.
_BEGINS: Final[Mapping[Submit, tuple[int, int, int]]] = {
    Submit.BURST: (0, 0, 0),
    Submit.BATCH: (0, 0, 1),
    Submit.SEQUENTIAL: (0, 1, 2),
    Submit.SEQUENTIAL_BY_ORIGINATOR: (0, 1, 0),
    Submit.SEQUENTIAL_BY_TENANT: (0, 1, 0),
}
_RETRIES_FAILED: Final = (Processing.RETRY_ALL, Processing.RETRY_FAILED, Processing.RETRY_FAILED_AND_TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A message in a handler's hands: the how-manieth moment that is, and what comes of it."""

    message: int
    slot: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    means: str
    attempts: list[Attempt]
    is_current: bool = False

    @property
    def told(self) -> str:
        """For who does not see it."""
        return "; ".join(f"{name} {self._story(number)}" for number, name in enumerate(MESSAGES)) + "."

    def _story(self, number: int) -> str:
        each = [
            f"{attempt.outcome} in turn {attempt.slot + 1}" for attempt in self.attempts if attempt.message == number
        ]
        return ", then ".join(each)


def attempts(submit: Submit, processing: Processing) -> list[Attempt]:
    """In the order of time. The first message fails once; tried again, it succeeds."""
    begins = _BEGINS[submit]
    if processing not in _RETRIES_FAILED:
        outcomes = ("is given up", "succeeds", "succeeds")
        return [Attempt(number, slot, outcomes[number]) for number, slot in enumerate(begins)]
    first = [Attempt(_FIRST, 0, "fails"), Attempt(_FIRST, 1, "succeeds")]
    for number, slot in enumerate(begins[1:], 1):
        if slot:
            first.append(Attempt(number, slot + 1, "succeeds"))
            continue
        first.append(Attempt(number, 0, "succeeds"))
        if processing is Processing.RETRY_ALL:
            first.append(Attempt(number, 1, "succeeds again"))
    return sorted(first, key=lambda attempt: (attempt.slot, attempt.message))


def picture_of(submit: Submit, processing: Processing) -> Picture:
    """Both together."""
    means = f"{SUBMIT_MEANS[submit]} {PROCESSING_MEANS[processing]}"
    return Picture(f"{submit} and {processing}", means, attempts(submit, processing))


def submit_pictures(current: Submit | None, processing: Processing) -> list[Picture]:
    """Each way to submit, with this way to process; the current one, if any, is marked."""
    return [Picture(one, SUBMIT_MEANS[one], attempts(one, processing), one == current) for one in Submit]


def processing_pictures(submit: Submit, current: Processing | None) -> list[Picture]:
    return [Picture(one, PROCESSING_MEANS[one], attempts(submit, one), one == current) for one in Processing]


def chosen_picture(submit: str, processing: str) -> Picture | None:
    """Both together, by their names; None where there are none such."""
    try:
        return picture_of(Submit(submit), Processing(processing))
    except ValueError:
        return None
