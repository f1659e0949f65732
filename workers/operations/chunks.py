"""Sending the letters of a replay, so many at a time, each exactly once.

Before a chunk is sent its targets' end offsets are noted. Whoever takes up a replay whose chunk was not finished reads
the targets from there on: what has arrived is not sent again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from django.db import transaction

from queueapi import runtime
from queueapi.actions.replay_items import begin_chunk, finish_chunk, settle_chunk
from queueapi.models import Replay, ReplayChunk
from queueapi.replay_messages import LetterRow, LetterSender
from queueapi.selectors.replay_rows import pending_rows
from queueapi.selectors.replays import route_of
from queuecore.errors import InvalidMessage, PayloadTooLarge, QueueError
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition
from workers.operations.answers import send_all
from workers.operations.run import OperationRun
from workers.operations.scanning import find_arrivals

# These are the letter's own fault; all other errors would meet any letter.
_OF_ONE_LETTER: Final = (InvalidMessage, PayloadTooLarge)

_GONE: Final = (
    "it may have been sent: {place} was cleaned up before it could be looked for; look for it at its handler, then "
    "replay or discard it"
)


class ChunkSender:
    """Sends the letters of one replay in their order."""

    def __init__(self, run: OperationRun, replay: Replay) -> None:
        self._run = run
        self._replay = replay
        self._sender = LetterSender(replay.id, route_of(replay))
        # No letter before this one is still to be sent.
        self._first = 0

    def send(self, most: int) -> int:
        """Send the next letters, up to so many, and note them. How many had their turn. QueueError leaves the chunk to
        be settled."""
        rows = pending_rows(self._replay, self._first, most)
        if not rows:
            return 0
        outgoing = [self._sender.address(row) for row in rows]
        chunk = self._begin(rows, outgoing)
        errors = send_all(runtime.provider().producer(), outgoing, self._run.check_lease)
        refused = _refused(rows, errors)
        with transaction.atomic():
            finish_chunk(chunk, len(rows) - len(refused), refused)
            self._run.note(self._run.operation.done + len(rows))
        self._first = rows[-1].sequence + 1
        return len(rows)

    def settle(self) -> None:
        """Find out what became of a chunk that was not finished."""
        chunk = ReplayChunk.objects.filter(replay=self._replay).first()
        if chunk is None:
            return
        offsets = {ProviderPartition(topic, partition): offset for topic, partition, offset in chunk.end_offsets}
        arrivals = find_arrivals(runtime.provider(), self._replay.id, offsets)
        uncertain = {}
        if arrivals.lost:
            uncertain = self._sent_to(arrivals.lost, self._missing(chunk, arrivals.letters))
        settle_chunk(chunk, arrivals.letters, uncertain)
        number, lost = len(arrivals.letters), len(uncertain)
        self._run.log(f"looked for a chunk that was not finished: {number} had arrived, {lost} cannot be known")

    def _missing(self, chunk: ReplayChunk, arrived: Collection[UUID]) -> list[LetterRow]:
        first, last = chunk.first_sequence, chunk.last_sequence
        rows = pending_rows(self._replay, first, last - first + 1, last)
        return [row for row in rows if UUID(row.letter_id) not in arrived]

    def _begin(self, rows: Sequence[LetterRow], outgoing: Sequence[Addressed]) -> ReplayChunk:
        places = {info.place for info, _message in outgoing}
        offsets = runtime.provider().admin().end_offsets(places)
        with transaction.atomic():
            self._run.note(self._run.operation.done)
            return begin_chunk(self._replay, rows[0].sequence, rows[-1].sequence, offsets)

    def _sent_to(self, places: Collection[ProviderPartition], rows: Iterable[LetterRow]) -> dict[UUID, str]:
        found = ((row.letter_id, self._sender.address(row).info.place) for row in rows)
        return {UUID(letter): _GONE.format(place=place) for letter, place in found if place in places}


def _refused(rows: Sequence[LetterRow], errors: Mapping[int, QueueError]) -> dict[UUID, str]:
    """The letters that cannot be sent as they are, and why. Raises the error that is no single letter's."""
    for error in errors.values():
        if not isinstance(error, _OF_ONE_LETTER):
            raise error
    return {UUID(rows[number].letter_id): error.message for number, error in errors.items()}
