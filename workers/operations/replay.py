"""Sending dead letters again."""

from concurrent.futures import Future, wait
from uuid import UUID

from queueapi import runtime
from queueapi.actions.dead_letters import mark_sent, reopen_unsent, replay_message
from queueapi.actions.operations import LEASE
from queueapi.models import Operation
from queueapi.selectors.dead_letters import unsent_letters
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable, QueueError
from queuecore.messages import RecordMetadata
from queuecore.sending import send
from workers.operations.run import OperationRun

CHUNK = 100
# The lease is extended between chunks, and each must be over well before it ends.
CHUNK_TIMEOUT_S = LEASE.total_seconds() / 2

Sends = dict[UUID, "Future[RecordMetadata]"]


class Replay:
    """Sends the letters in their order, a chunk at a time, and notes each that was acknowledged.

    The notes on the letters decide what is still to be sent; `done` only counts. A runner that dies sends at most
    one chunk twice, less what was already handled.
    """

    def __init__(self, chunk_timeout_s: float = CHUNK_TIMEOUT_S, clock: Clock = SYSTEM_CLOCK) -> None:
        self._chunk_timeout_s = chunk_timeout_s
        self._clock = clock

    def run(self, run: OperationRun) -> str:
        waiting = _unsent(run.operation)
        for start in range(0, len(waiting), CHUNK):
            self._send_chunk(run, waiting[start : start + CHUNK])
        return f"sent {run.operation.total} to their queues"

    def give_back(self, operation: Operation) -> None:
        reopen_unsent(operation)

    def _send_chunk(self, run: OperationRun, letter_ids: list[UUID]) -> None:
        """Send, note what was acknowledged in time, then raise what went wrong with the others."""
        operation = run.operation
        deadline = self._clock.monotonic() + self._chunk_timeout_s
        sends = self._send(operation, letter_ids, deadline)
        answered, late = wait(sends.values(), max(0.0, deadline - self._clock.monotonic()))
        errors = [error for sent in sends.values() if sent in answered and (error := sent.exception())]
        mark_sent(operation, [letter for letter, sent in sends.items() if sent in answered and not sent.exception()])
        run.step(operation.total - unsent_letters(operation).count())
        if errors:
            raise errors[0]
        if late:
            raise ProviderUnavailable(
                f"{len(late)} of {len(sends)} messages were not acknowledged within {self._chunk_timeout_s:g} s and "
                "may still be stored; look at the provider, then replay the letters that are open again"
            )

    def _send(self, operation: Operation, letter_ids: list[UUID], deadline: float) -> Sends:
        """Start sending what is still unsent. Ends at the first that the producer refuses, so that none overtakes it;
        what found no time is never answered."""
        letters = unsent_letters(operation).select_related("queue").in_bulk(letter_ids)
        wanted = [letters[letter_id] for letter_id in letter_ids if letter_id in letters]
        # All are made before the first is sent: one that cannot be made leaves none sent and unnoted.
        messages = [(letter.queue.partition_info(letter.partition), replay_message(letter)) for letter in wanted]
        producer = runtime.provider().producer()
        sends: Sends = {}
        for letter, (info, message) in zip(wanted, messages, strict=True):
            in_time = self._clock.monotonic() < deadline
            try:
                sends[letter.id] = send(producer, info, message) if in_time else Future()
            except QueueError as error:
                sends[letter.id] = Future()
                sends[letter.id].set_exception(error)
                break
        return sends


def _unsent(operation: Operation) -> list[UUID]:
    unsent = set(unsent_letters(operation).values_list("id", flat=True))
    return [letter for text in operation.params["letters"] if (letter := UUID(text)) in unsent]
