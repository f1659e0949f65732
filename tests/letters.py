"""Dead letters for tests, as the index would have entered them."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from queueapi.actions.letter_groups import enter_groups
from queueapi.actions.letter_states import TallyKey, count_changes
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterBody, Queue

FAILED_AT = datetime(2026, 1, 1, tzinfo=UTC)

_numbers = count()
_BODY = ("headers", "payload", "stack_trace")


def make_letter(queue: Queue, **fields: Any) -> DeadLetter:
    """A letter of this queue with its body, group and counts. What is not given is like that of all others, but for its
    place: those made later failed later."""
    number = next(_numbers)
    told = {
        "letter_topic": queue.letter_topic,
        "letter_partition": 0,
        "letter_offset": number,
        "topic": f"{queue.topic}.0",
        "partition": 0,
        "offset": number,
        "key": uuid4(),
        "handler": queue.handler,
        "consumer_group": "group",
        "reason": "retries_exhausted",
        "stage": "handle",
        "exception_class": "demo.errors.OutOfRange",
        "exception_message": "too hot",
        "fingerprint": "aaaabbbbccccdddd",
        "attempts": 4,
        "sent_at": FAILED_AT,
        "first_failed_at": FAILED_AT,
        "failed_at": FAILED_AT + timedelta(seconds=number),
        **fields,
    }
    body = {
        "payload": b'{"temperature": 21.5}',
        "headers": {},
        "stack_trace": "Traceback (most recent call last):\n  …",
    }
    body |= {name: told.pop(name) for name in _BODY if name in told}
    letter = DeadLetter(queue=queue, payload_size=len(body["payload"]), **told)
    letter.group_id = _group(letter)
    letter.save(force_insert=True)
    letter.body = DeadLetterBody.objects.create(letter=letter, **body)
    count_changes({TallyKey(letter.group_id, letter.tenant_id, LetterState(letter.state)): 1})
    return letter


def make_letters(queue: Queue, number: int, **fields: Any) -> list[UUID]:
    """So many, in the order in which they failed."""
    return [make_letter(queue, **fields).id for _ in range(number)]


def states_of(letters: list[UUID]) -> list[str]:
    rows = DeadLetter.objects.in_bulk(letters)
    return [rows[letter].state for letter in letters]


def _group(letter: DeadLetter) -> int:
    row = {name: getattr(letter, name) for name in ("exception_class", "exception_message", "failed_at")}
    key = letter.queue_id, letter.fingerprint
    return enter_groups([{**row, "queue_id": letter.queue_id, "fingerprint": letter.fingerprint}])[key]
