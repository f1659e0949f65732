"""The letters that a replay sends next, read as fast as can be: no models, and no conversion that is not needed."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from uuid import UUID

from django.db import connection

from queueapi.choices import ReplayItemState
from queueapi.models import DeadLetterEdit, Replay
from queueapi.replay_messages import LetterRow, key_of

# What is sent at once fits into memory, however large the letters are.
_MAX_BYTES: Final = 16 * 1024 * 1024
_FETCH: Final = 500

_COLUMNS: Final = (
    "sequence",
    "letter_id",
    "letter__queue_id",
    "letter__topic",
    "letter__partition",
    "letter__origin",
    "letter__replay_count",
    "letter__is_edited",
    "letter__key",
    "letter__raw_key",
    "letter__body__headers",
    "letter__body__payload",
)


def pending_rows(replay: Replay, first: int, most: int, last: int | None = None) -> list[LetterRow]:
    """What is to be sent from this place on, in order, each as it was edited last: no more than so many, and not too
    many bytes at once."""
    rows: list[LetterRow] = []
    size = 0
    for row in _stored_rows(replay, first, most, last):
        size += len(row.payload)
        if rows and size > _MAX_BYTES:
            break
        rows.append(row)
    return _as_edited(rows)


def _stored_rows(replay: Replay, first: int, most: int, last: int | None) -> Iterator[LetterRow]:
    items = replay.items.filter(state=ReplayItemState.PENDING, sequence__gte=first).order_by("sequence")
    if last is not None:
        items = items.filter(sequence__lte=last)
    query, params = items.values_list(*_COLUMNS)[:most].query.sql_with_params()
    queues: dict[Any, UUID] = {}
    with closing(connection.cursor()) as cursor:
        cursor.execute(query, params)
        while rows := cursor.fetchmany(_FETCH):
            for sequence, letter, queue, topic, partition, origin, count, is_edited, key, raw_key, *body in rows:
                if queue not in queues:
                    queues[queue] = _uuid(queue)
                yield LetterRow(
                    sequence,
                    _text(letter),
                    queues[queue],
                    topic,
                    partition,
                    origin,
                    count,
                    bool(is_edited),
                    key_of(key and _uuid(key), raw_key),
                    json.loads(body[0]),
                    bytes(body[1]),
                )


def _as_edited(rows: list[LetterRow]) -> list[LetterRow]:
    edited = [UUID(row.letter_id) for row in rows if row.is_edited]
    if not edited:
        return rows
    edits = {str(letter): edit for letter, edit in DeadLetterEdit.objects.in_bulk(edited).items()}
    return [_with_edit(row, edits[row.letter_id]) if row.letter_id in edits else row for row in rows]


def _with_edit(row: LetterRow, edit: DeadLetterEdit) -> LetterRow:
    return row._replace(key=key_of(edit.key, edit.raw_key), headers=edit.headers, payload=bytes(edit.payload))


def _uuid(stored: Any) -> UUID:
    """An id as PostgreSQL gives it, or as SQLite keeps it: 32 digits."""
    return stored if isinstance(stored, UUID) else UUID(int=int(stored, 16))


def _text(stored: Any) -> str:
    if isinstance(stored, UUID):
        return str(stored)
    return f"{stored[:8]}-{stored[8:12]}-{stored[12:16]}-{stored[16:20]}-{stored[20:]}"
