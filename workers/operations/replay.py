"""Sending dead letters again."""

from uuid import UUID

from queueapi import runtime
from queueapi.actions.dead_letters import reopen_unsent, replay_message
from queueapi.models import DeadLetter, Operation
from queuecore.sending import send
from workers.operations.run import OperationRun

CHUNK = 100
_ACK_TIMEOUT_S = 30


class Replay:
    """Sends the letters in their order, a chunk at a time, beginning behind what is already done.

    Progress is recorded after each acknowledged chunk: a runner that dies sends at most one chunk twice.
    """

    def run(self, run: OperationRun) -> str:
        letter_ids = _letters(run.operation)
        for start in range(run.operation.done, len(letter_ids), CHUNK):
            chunk = letter_ids[start : start + CHUNK]
            _send(chunk)
            run.step(start + len(chunk))
        return f"sent {len(letter_ids)} to their queues"

    def give_back(self, operation: Operation) -> None:
        reopen_unsent(_letters(operation)[operation.done :])


def _letters(operation: Operation) -> list[UUID]:
    return [UUID(letter) for letter in operation.params["letters"]]


def _send(letter_ids: list[UUID]) -> None:
    letters = DeadLetter.objects.select_related("queue").in_bulk(letter_ids)
    producer = runtime.provider().producer()
    sends = []
    for letter_id in letter_ids:
        letter = letters[letter_id]
        info = letter.queue.partition_info(letter.partition)
        sends.append(send(producer, info, replay_message(letter)))
    for future in sends:
        future.result(_ACK_TIMEOUT_S)
