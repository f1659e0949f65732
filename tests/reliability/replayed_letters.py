"""`python -m tests.reliability.replayed_letters make 300`, or `tell REPLAY`, on the installation of the environment:
letters to be replayed, and afterwards what its letters, its ledger and its queue say of them, as JSON."""

import json
import os
import sys
from typing import Any
from uuid import UUID

QUEUE = "Main"


def make(count: int) -> dict[str, Any]:
    """So many open letters of the queue, one entity's in each partition."""
    from queueapi.models import Queue
    from tests.integration.replay_kit import make_letters

    queue = Queue.objects.get(name=QUEUE)
    letters = make_letters(queue, count, partitions=queue.partitions)
    return {"queue": str(queue.id), "letters": [str(one) for one in letters]}


def tell(replay_id: UUID) -> dict[str, Any]:
    from queueapi.models import DeadLetter, LedgerEntry, Queue, Replay
    from tests.integration.replay_kit import sent_letters

    replay = Replay.objects.select_related("operation").get(id=replay_id)
    letters = DeadLetter.objects.filter(replay=replay).values_list("id", "state")
    return {
        "state": replay.operation.state,
        "sent": [str(one) for one in sent_letters(Queue.objects.get(name=QUEUE))],
        "counted": [replay.sent, replay.succeeded, replay.failed, replay.skipped],
        "letters": {str(one): state for one, state in letters},
        "ledger": list(LedgerEntry.objects.filter(replay=replay).values_list("action", "count")),
    }


def main(verb: str, argument: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    from queueapi.runtime import close_provider

    told = make(int(argument)) if verb == "make" else tell(UUID(argument))
    close_provider()
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
