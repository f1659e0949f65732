"""What one instance is told: the only consumer of its notification topics."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from queuecore.cluster.events import EVENT_KINDS, EventBus, decode_event
from queuecore.cluster.kinds import kind_of
from queuecore.cluster.listening import Listeners, Listening
from queuecore.cluster.notifications.names import DEFAULT_SETTINGS, inbox_addresses, inbox_group, inbox_specs
from queuecore.cluster.services import ServiceInfo
from queuecore.config.queue_tree import QueueSettings
from queuecore.consuming.beginning import begin_at_end
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.deadletter.policy import DeadLetterPolicy
from queuecore.errors import GroupActive
from queuecore.messages import Record
from queuecore.providers.base import Provider, QueueAdmin, QueueProducer
from queuecore.submit.strategies import Sequential
from queuecore.topics import ProviderPartition

# The group is one instance's alone: whoever comes with its id takes this place.
_MEMBER: Final = "inbox"
_POLL_MS: Final = 100
_STOP_WITHIN_S: Final = 10.0

NotificationListener = Callable[[Record], None]


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """What became of the notifications an inbox got.

    delivered  told whoever listened
    unheard    of these, those that nobody listened for
    failures   how often a listener raised
    """

    delivered: int = 0
    unheard: int = 0
    failures: int = 0


class NotificationInbox:
    """Reads all notification topics of an instance, and tells whoever listens. Its methods are safe from any thread;
    leaving its `with` block stops it.

    Listeners are called one after the other, on one thread of the inbox's own. A notification counts as done when all
    that listen for it have returned or raised: what they raise is logged and counted, and nothing is told again because
    of it. After a crash the last ones come again. The order is kept within each topic.

    While the provider cannot be reached the inbox says so in the log and joins again by itself. One whose place was
    taken, by another with the same service id, stands by until that one is gone.
    """

    def __init__(
        self,
        provider: Provider,
        service: ServiceInfo,
        settings: QueueSettings = DEFAULT_SETTINGS,
        *,
        producer: QueueProducer | None = None,
    ) -> None:
        """`producer` is lent: without one, an own is made while it runs."""
        self.service = service
        self._provider = provider
        self._settings = settings
        self._producer = producer
        self._infos = inbox_addresses(service, settings)
        self._listeners: Listeners[str | None, Record] = Listeners(f"notifications of {service.service_id}")
        # Written by the one thread that tells.
        self._delivered = self._unheard = 0
        self._changing = threading.Lock()
        self._consumption: Consumption | None = None

    @property
    def group(self) -> str:
        return inbox_group(self.service, self._settings)

    @property
    def topics(self) -> tuple[str, ...]:
        """What it reads, its main type's topic first."""
        return tuple(info.full_topic_name for info in self._infos)

    @property
    def counts(self) -> InboxCounts:
        return InboxCounts(self._delivered, self._unheard, self._listeners.failures)

    @property
    def is_reading(self) -> bool:
        """Whether all of its topics are its own now: not before it has joined, nor while it was displaced."""
        consumption = self._consumption
        stay = None if consumption is None else consumption.stay
        return stay is not None and stay.held == {info.place for info in self._infos}

    @property
    def error(self) -> Exception | None:
        """What ended it, if anything did. Start it again then."""
        return None if self._consumption is None else self._consumption.error

    def listen(self, kind: str, callback: NotificationListener) -> Listening:
        """Hear notifications whose header says this kind, until the handle is closed."""
        return self._listeners.add(kind, callback)

    def listen_to_all(self, callback: NotificationListener) -> Listening:
        """Hear every notification, those that do not say what they are as well."""
        return self._listeners.add(None, callback)

    def forward_events(self, bus: EventBus) -> None:
        """Publish the cluster's events that others send to this instance."""
        for kind in EVENT_KINDS:
            self.listen(kind, lambda record: _publish(bus, record))

    def join(self) -> None:
        """Create what is missing of the topics, and settle where an instance begins that is new: with what is sent from
        now on. A restarted one goes on where it was. Harmless when repeated, as after it was long away: others may have
        removed its topics meanwhile. Raises what the provider does."""
        admin = self._provider.admin()
        there = admin.topics().keys()
        admin.create_topics(inbox_specs(self.service, self._settings))
        places = {info.place for info in self._infos}
        known = {place for place in places if place.topic in there}
        begin_at_end(admin, self.group, known)
        # Whatever the provider's options say: in a topic that was not there, everything is new.
        _begin_at_start(admin, self.group, places - known)

    def start(self) -> None:
        """Join, and begin to tell. Does nothing while it runs; raises what the provider does."""
        with self._changing:
            if self._consumption is not None and self._consumption.is_running:
                return
            self.join()
            self._consumption = Consumption(self._plan(), self._provider, self._deliver, producer=self._producer)
            self._consumption.start()

    def stop(self, timeout_s: float = _STOP_WITHIN_S) -> bool:
        """Let the listener that is at it end, and leave. The topics stay: a successor finds what comes meanwhile. False
        when that took longer. A listener may call this too, and is not waited for."""
        with self._changing:
            consumption = self._consumption
        return consumption is None or consumption.stop(timeout_s)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _plan(self) -> ConsumptionPlan:
        return ConsumptionPlan(
            "notifications",
            self.group,
            self._infos,
            "notifications",
            service_id=self.service.service_id,
            submit=Sequential(),
            letters=DeadLetterPolicy(enabled=False),
            timeout_ms=None,
            concurrency=1,
            poll_interval_ms=_POLL_MS,
            member_id=_MEMBER,
        )

    def _deliver(self, record: Record, context: DeliveryContext) -> None:  # noqa: ARG002
        heard = self._listeners.tell((kind_of(record), None), record)
        self._delivered += 1
        self._unheard += not heard


def _publish(bus: EventBus, record: Record) -> None:
    if (event := decode_event(record)) is not None:
        bus.publish(event)


def _begin_at_start(admin: QueueAdmin, group: str, places: set[ProviderPartition]) -> None:
    # Where somebody reads already, that one has begun.
    with suppress(GroupActive):
        admin.alter_group_offsets(group, admin.beginning_offsets(places))
