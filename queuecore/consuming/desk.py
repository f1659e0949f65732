"""What settling takes, whatever the delivery: send what handlers sent, put aside what cannot be sent."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from queuecore.consuming.counting import Became, Counter
from queuecore.consuming.observing import Observer
from queuecore.consuming.partition import PartitionWork
from queuecore.consuming.patience import Patience
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.consuming.posting import Posting, Routing, Unrouted
from queuecore.consuming.state import PartitionState
from queuecore.consuming.work import Outcome, Work
from queuecore.deadletter.envelope import Stage
from queuecore.deadletter.fitting import fit_letter
from queuecore.deadletter.writing import LetterWriter
from queuecore.errors import PayloadTooLarge, QueueError
from queuecore.messages import RecordMetadata
from queuecore.metrics.recorder import NoRecording, Recording
from queuecore.providers.base import Provider, QueueConsumer, QueueProducer
from queuecore.sending import Addressed, send

logger = logging.getLogger(__name__)

_ACK_S: Final = 60.0

# Messages of a partition that are done or given up, and not yet committed.
Finished = tuple[PartitionWork, list[Work]]


@dataclass(slots=True)
class Desk:
    """One consumption's. For the thread that reads."""

    plan: Callable[[], ConsumptionPlan]
    provider: Provider
    producer: QueueProducer
    counter: Counter
    observer: Observer
    patience: Patience = field(default_factory=lambda: Patience(lambda: float("inf")))
    routing: Routing = field(default_factory=Unrouted)
    recording: Recording = field(default_factory=NoRecording)
    _posting: Posting = field(default_factory=Unrouted)

    def be_patient(self, consumer: QueueConsumer, deadline: float | None) -> None:
        """What is sent from now on has this long. With a deadline the consumer cannot be polled."""
        self.patience.deadline = float("inf") if deadline is None else deadline
        self.patience.keep_alive = consumer.keep_alive if deadline is None else None

    def letter(self, part: PartitionWork, work: Work, error: BaseException, stage: Stage) -> None:
        """Have it become a letter once it is settled; or nothing, where the queue wants no letters."""
        plan, info = self.plan(), part.info
        if not plan.letters.enabled:
            work.outgoing = ()
            where = f"{info}@{work.record.offset}"
            logger.error(
                "%s is given up (%s) and dropped, as its queue has no dead letters: %r", where, work.reason, error
            )
            return
        writer = LetterWriter(plan.queue_id or plan.queue, plan.group, plan.handler_name, plan.service_id, plan.letters)
        letter = writer.write(
            info,
            work.record,
            error,
            reason=work.reason,
            stage=stage,
            attempts=work.deliveries,
            first_failed_at_ms=work.trouble.first_failed_at_ms,
            failures=work.trouble.attempts,
            epoch=part.epoch,
        )
        work.outgoing = (letter,)

    def refused(self, part: PartitionWork, work: Work, error: QueueError) -> None:
        """What is to be sent of a message whose handler sent what cannot be stored: its letter; of a letter that is too
        large itself, one that fits, with its payload apart. Any other letter that cannot be stored is raised, and so is
        the error where nothing was sent: the original stays where it is. StateUndone where handlers may have built on
        what this one remembered."""
        if work.reason:
            work.outgoing = self._smaller(work.outgoing, error)
            return
        if part.state is not None:
            part.state.refuse(work.record.offset, error)
        if not work.outgoing:
            raise error
        logger.error("%s@%d sent what cannot be stored: %s", part.info, work.record.offset, error)
        work.trouble.reason = "output_refused"
        self.letter(part, work, error, Stage.SEND)

    def _smaller(self, outgoing: tuple[Addressed, ...], error: QueueError) -> tuple[Addressed, ...]:
        fitting = fit_letter(outgoing, error, self.provider.admin()) if isinstance(error, PayloadTooLarge) else None
        if fitting is None:
            raise error
        return fitting

    @contextmanager
    def posting(self) -> Iterator[None]:
        """What is sent in this block goes by one routing version."""
        with self.routing.posting() as posting:
            before, self._posting = self._posting, posting
            try:
                yield
            finally:
                self._posting = before

    def where(self, addressed: Addressed) -> Addressed:
        """With the address that it has now."""
        return self._posting.where(addressed)

    def send(self, work: Work) -> list["Future[RecordMetadata]"]:
        """What it has to wait for. ProviderUnavailable where there is no room to send."""
        return [self._send(addressed) for addressed in work.outgoing]

    def _send(self, addressed: Addressed) -> "Future[RecordMetadata]":
        stored = send(self.producer, *self.where(addressed))
        self._posting.sent(stored)
        return stored

    def finish_sending(self, part: PartitionWork, work: Work, stored: Iterable["Future[RecordMetadata]"]) -> None:
        """All that it sent is stored, or its letter instead."""
        while True:
            try:
                self.patience.wait_for(stored)
            except QueueError as error:
                if error.retryable:
                    raise
                self.refused(part, work, error)
                stored = self._send_in_turn(work)
            else:
                return self.sent(work)

    def sent(self, work: Work) -> None:
        """What it had to store is stored. A letter is not sent by its handler."""
        if not work.reason:
            self.counter.add("sent", len(work.outgoing))

    def _send_in_turn(self, work: Work) -> Iterator["Future[RecordMetadata]"]:
        """Each once the one before it is stored: so no letter is without its payload."""
        return (self._send(addressed) for addressed in work.outgoing)

    def store_state(self, state: PartitionState, works: Iterable[Work]) -> None:
        """What these have remembered. The largest first: where that can be stored the others can, and else none is."""
        messages = state.messages([work.record.offset for work in works])
        sending = [(offset, one) for offset, those in messages.items() for one in those]
        sending.sort(key=lambda one: len(one[1].message.data), reverse=True)
        for batch in (sending[:1], sending[1:]):
            for offset, stored in [(offset, self._send(one)) for offset, one in batch]:
                try:
                    self.patience.wait_for([stored])
                except QueueError as error:
                    if error.retryable:
                        raise
                    state.refuse(offset, error)

    def settled(self, part: PartitionWork, works: Sequence[Work]) -> None:
        """These are committed."""
        became: defaultdict[Became, int] = defaultdict(int)
        special = [work for work in works if work.is_special]
        for work in special:
            if work.reason:
                became["dead_lettered" if work.outgoing else "dropped"] += 1
            elif work.outcome is Outcome.PASSED_OVER:
                became["passed_over"] += 1
        became["handled"] = len(works) - sum(became.values())
        for what, number in became.items():
            self.counter.add(what, number)
        part.recorder.settled(works, special)
