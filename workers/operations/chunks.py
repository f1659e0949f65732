"""Sending the letters of a replay, so many at a time, each exactly once.

A chunk is one transaction, so all of it arrives or nothing does, and in its order. Before it is sent its targets' end
offsets are noted. Whoever takes up a replay whose chunk was not finished ends that transaction, as there is one
transactional id for each replay, and then reads the targets from there on: what has arrived by then is not sent again,
and what has not never will.
"""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from django.db import transaction

from queueapi import runtime
from queueapi.actions.replay_items import abandon_chunk, begin_chunk, finish_chunk, settle_chunk
from queueapi.models import Replay, ReplayChunk
from queueapi.replay_messages import LetterRow, LetterSender
from queueapi.selectors.replay_rows import pending_rows
from queueapi.selectors.replays import letters_of_chunk, route_of
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import InvalidMessage, PayloadTooLarge
from queuecore.providers.base import TransactionalProducer
from queuecore.sending import Addressed
from queuecore.topics import ProviderPartition
from workers.operations.run import OperationRun
from workers.operations.scanning import find_arrivals

# These are the letter's own fault; all other errors would meet any letter.
_OF_ONE_LETTER: Final = (InvalidMessage, PayloadTooLarge)

_GONE: Final = (
    "it may have been sent: {place} was cleaned up before it could be looked for; look for it at its handler, then "
    "replay or discard it"
)


class ChunkSender:
    """Sends the letters of one replay in their order. To be closed."""

    def __init__(self, run: OperationRun, replay: Replay, clock: Clock = SYSTEM_CLOCK) -> None:
        self._run = run
        self._replay = replay
        self._clock = clock
        self._sender = LetterSender(replay.id, route_of(replay))
        self._opened: TransactionalProducer | None = None
        # No letter before this one is still to be sent.
        self._first = 0

    def send(self, most: int) -> int:
        """Send the next letters, up to so many, and note them. How many had their turn. QueueError leaves the chunk to
        be settled."""
        rows = pending_rows(self._replay, self._first, most)
        if not rows:
            return 0
        self._send(rows)
        self._first = rows[-1].sequence + 1
        return len(rows)

    def settle(self) -> None:
        """Find out what became of a chunk that was not finished."""
        chunk = ReplayChunk.objects.filter(replay=self._replay).first()
        if chunk is None:
            return
        # Whoever sent it cannot commit it any more.
        self._producer()
        offsets = {ProviderPartition(topic, partition): offset for topic, partition, offset in chunk.end_offsets}
        arrivals = find_arrivals(runtime.provider(), self._replay.id, offsets, self._clock)
        has_arrived = not arrivals.letters.isdisjoint(letters_of_chunk(chunk))
        # One target that was seen whole, and has nothing, is enough to know.
        uncertain = self._lost(chunk) if not has_arrived and arrivals.lost == offsets.keys() else {}
        with transaction.atomic():
            settle_chunk(chunk, has_arrived, uncertain)
            self._run.note(self._run.operation.done)
        known = "cannot be known" if uncertain else "had arrived" if has_arrived else "had not arrived"
        self._run.log(f"looked for a chunk that was not finished: it {known}")

    def close(self) -> None:
        if self._opened is not None:
            self._opened.stop()

    def _send(self, rows: Sequence[LetterRow]) -> None:
        """All of these, but what cannot be stored as it is: that is looked for where the provider does not say which
        letter it means, by sending halves."""
        outgoing = [self._sender.address(row) for row in rows]
        chunk = self._begin(rows, outgoing)
        try:
            self._commit(outgoing)
        except _OF_ONE_LETTER as error:
            refused = self._refused(rows, outgoing) or ({} if rows[1:] else {UUID(rows[0].letter_id): error.message})
        else:
            with transaction.atomic():
                finish_chunk(chunk, len(rows))
                self._run.note(self._run.operation.done + len(rows))
            return
        with transaction.atomic():
            abandon_chunk(chunk, refused)
            self._run.note(self._run.operation.done + len(refused))
        for part in _parts(rows, refused):
            self._send(part)

    def _begin(self, rows: Sequence[LetterRow], outgoing: Sequence[Addressed]) -> ReplayChunk:
        # Before the lease is checked: one that is opened here after somebody else has settled the chunk would fence
        # them, and not be fenced.
        self._producer()
        places = {info.place for info, _message in outgoing}
        offsets = runtime.provider().admin().end_offsets(places)
        with transaction.atomic():
            self._run.note(self._run.operation.done)
            return begin_chunk(self._replay, rows[0].sequence, rows[-1].sequence, offsets)

    def _commit(self, outgoing: Sequence[Addressed]) -> None:
        with self._producer().begin() as chunk:
            for info, message in outgoing:
                chunk.send(info, message)
            self._run.check_lease()

    def _producer(self) -> TransactionalProducer:
        """Opening it fences whoever ran this replay before, and ends what they left open."""
        if self._opened is None:
            self._opened = runtime.provider().transactional_producer(f"replay-{self._replay.id}")
        return self._opened

    def _refused(self, rows: Sequence[LetterRow], outgoing: Sequence[Addressed]) -> dict[UUID, str]:
        """The letters that are seen to be refused, and why."""
        refused = {}
        for row, (info, message) in zip(rows, outgoing, strict=True):
            try:
                self._producer().check(info, message)
            except _OF_ONE_LETTER as error:
                refused[UUID(row.letter_id)] = error.message
        return refused

    def _lost(self, chunk: ReplayChunk) -> dict[UUID, str]:
        first, last = chunk.first_sequence, chunk.last_sequence
        rows = pending_rows(self._replay, first, last - first + 1, last)
        return {UUID(row.letter_id): _GONE.format(place=self._sender.address(row).info.place) for row in rows}


def _parts(rows: Sequence[LetterRow], refused: Collection[UUID]) -> list[Sequence[LetterRow]]:
    """What to send next of letters that were not sent together."""
    if refused:
        rest = [row for row in rows if UUID(row.letter_id) not in refused]
        return [rest] if rest else []
    middle = len(rows) // 2
    return [rows[:middle], rows[middle:]]
