"""States and their looks: value, label, and the tone a badge has."""

from typing import Final

from django.db import models


class Tone(models.TextChoices):
    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


class OperationState(models.TextChoices):
    PENDING = "pending", "Pending"
    RUNNING = "running", "Running"
    CANCELLING = "cancelling", "Cancelling"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"

    @property
    def tone(self) -> Tone:
        return _OPERATION_TONES[self]

    @property
    def is_final(self) -> bool:
        return self in FINAL_OPERATION_STATES


class LetterState(models.TextChoices):
    OPEN = "open", "Open"
    REPLAYING = "replaying", "Replaying"
    REPLAYED = "replayed", "Replayed"
    FAILED_AGAIN = "failed_again", "Failed again"
    DISCARDED = "discarded", "Discarded"

    @property
    def tone(self) -> Tone:
        return _LETTER_TONES[self]


class ProcessState(models.TextChoices):
    RUNNING = "running", "Running"
    RESTARTING = "restarting", "Restarting"
    STOPPED = "stopped", "Stopped"

    @property
    def tone(self) -> Tone:
        return _PROCESS_TONES[self]


# Tuples, not sets: they become part of database constraints, whose order must not vary.
FINAL_OPERATION_STATES: Final = (OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELLED)
# One that failed again lives on as the letter its replay became: replaying both would send the message twice.
REPLAYABLE_LETTER_STATES: Final = (LetterState.OPEN,)

_OPERATION_TONES: Final = {
    OperationState.PENDING: Tone.QUIET,
    OperationState.RUNNING: Tone.BUSY,
    OperationState.CANCELLING: Tone.WARN,
    OperationState.SUCCEEDED: Tone.GOOD,
    OperationState.FAILED: Tone.BAD,
    OperationState.CANCELLED: Tone.QUIET,
}
_LETTER_TONES: Final = {
    LetterState.OPEN: Tone.BAD,
    LetterState.REPLAYING: Tone.BUSY,
    LetterState.REPLAYED: Tone.GOOD,
    LetterState.FAILED_AGAIN: Tone.WARN,
    LetterState.DISCARDED: Tone.QUIET,
}
_PROCESS_TONES: Final = {
    ProcessState.RUNNING: Tone.GOOD,
    ProcessState.RESTARTING: Tone.BAD,
    ProcessState.STOPPED: Tone.QUIET,
}
