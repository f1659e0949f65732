"""A host's notification topics: it reads its own, and as the coordinator tells others what has changed."""

import logging
import time
from typing import Final

from queueapi import runtime
from queueapi.cluster.store import DatabaseStore
from queueapi.config import config
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.cluster.agent import ClusterAgent
from queuecore.cluster.events import NOTHING_SEEN, PartitionChangeEvent, diff_for_all, encode_event
from queuecore.cluster.notifications import NotificationInbox, Notifier, remove_abandoned_topics
from queuecore.errors import QueueError
from queuecore.providers.base import QueueProducer
from workers.backoff import BackOff

logger = logging.getLogger(__name__)

# How often topics of instances that are gone for good are looked for.
_SWEEP_EVERY_S: Final = 600.0


class HostNotifications:
    """For the host's thread, but for `stop`."""

    def __init__(self, agent: ClusterAgent, clock: Clock = SYSTEM_CLOCK) -> None:
        self._agent = agent
        self._backoff = BackOff(clock)
        self._inbox: NotificationInbox | None = None
        self._producer: QueueProducer | None = None
        # Who is told by it, of what they have not seen.
        self._told = NOTHING_SEEN
        self._gone_since: dict[str, float] = {}
        self._sweep_at = time.monotonic() + _SWEEP_EVERY_S
        # Somebody who coordinates says so before this instance would have looked.
        agent.events.listen(PartitionChangeEvent, lambda _: agent.look_now())

    def look(self) -> None:
        """Begin to read where that was not possible yet, and do the coordinator's part where this one is it."""
        if not self._agent.is_member or not self._backoff.is_over:
            return
        try:
            if self._inbox is None:
                self._open()
            if self._agent.is_coordinator:
                self._tell_others()
                self._sweep()
            else:
                self._told = self._agent.view
        except QueueError as error:
            pause_s = self._backoff.failed()
            logger.warning("notifications wait, and are tried again in %g s: %s", pause_s, error)

    def stop(self) -> None:
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.stop()
        if self._producer is not None:
            self._producer.stop()

    def _open(self) -> None:
        inbox = NotificationInbox(runtime.provider(), self._agent.service, config().queue)
        inbox.forward_events(self._agent.events)
        inbox.join()
        inbox.start()
        self._inbox = inbox

    def _tell_others(self) -> None:
        """The newest view is told once, whatever became of the sending: who misses it finds out by looking."""
        before, after = self._told, self._agent.view
        self._told = after
        others = diff_for_all(before, after)
        others.pop(self._agent.service.service_id, None)
        if not others:
            return
        if self._producer is None:
            self._producer = runtime.provider().producer()
        notifier = Notifier(
            self._producer, lambda: after.services, config().queue, producer_id=self._agent.service.service_id
        )
        for service_id, events in others.items():
            for event in events:
                notifier.notify(service_id, encode_event(event))

    def _sweep(self) -> None:
        if (now := time.monotonic()) < self._sweep_at:
            return
        self._sweep_at = now + _SWEEP_EVERY_S
        gone = {name: now - ago_s for name, ago_s in DatabaseStore().gone().items()}
        alive = self._agent.view.services.keys()
        admin = runtime.provider().admin()
        sweep = remove_abandoned_topics(admin, alive, {**self._gone_since, **gone}, now, config().queue)
        self._gone_since = dict(sweep.gone_since)
