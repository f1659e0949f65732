"""An operation with what it has touched."""

from django.db.models import Count

from queueapi.choices import LetterState
from queueapi.models import DeadLetter, Operation, OperationLogEntry
from queueapi.selectors.dead_letters import letters_for_lists

LOG_LINES_SHOWN = 200
LETTERS_SHOWN = 25


def newest_log_entries(operation: Operation) -> list[OperationLogEntry]:
    """The last lines, oldest of them first."""
    newest = operation.log.order_by("-id")[:LOG_LINES_SHOWN]
    return list(reversed(newest))


def letters_of(operation: Operation) -> list[DeadLetter]:
    return list(letters_for_lists().filter(replay__operation=operation)[:LETTERS_SHOWN])


def letter_states_of(operation: Operation) -> list[tuple[LetterState, int]]:
    letters = DeadLetter.objects.filter(replay__operation=operation).order_by()
    found = dict(letters.values_list("state").annotate(number=Count("pk")))
    return [(state, found[state]) for state in LetterState if state in found]
