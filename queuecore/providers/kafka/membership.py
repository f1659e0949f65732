"""One stay in a group, from joining it to leaving it."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Set

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from queuecore.clock import Clock
from queuecore.errors import OffsetOutOfRange, ProviderUnavailable, QueueError
from queuecore.messages import Record
from queuecore.providers.base import AssignmentListener
from queuecore.providers.kafka.assignment import Assignment
from queuecore.providers.kafka.codes import NOT_STARTED, PASSING, REBALANCING
from queuecore.providers.kafka.connection import Connection, logger
from queuecore.providers.kafka.intake import Intake
from queuecore.providers.kafka.patience import Caller
from queuecore.providers.kafka.records import to_kafka, to_records
from queuecore.providers.kafka.settings import consumer_settings
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import ProviderPartition

# How long a rebalance under way may keep a member that wants to leave.
_LEAVING_S = 5.0
_LOOK_AGAIN_S = 0.02


class Membership:
    """A library consumer and what the group has given to it. For one thread.

    `wanted` is None for whole topics, as they grow.
    """

    def __init__(
        self,
        connection: Connection,
        group: str,
        member_id: str | None,
        wanted: Set[ProviderPartition] | None,
        options: ConsumerOptions,
        listener: AssignmentListener | None,
        clock: Clock,
    ) -> None:
        self._connection = connection
        self._group = group
        self._clock = clock
        # The brokers change generations under a member that keeps its partitions.
        self._incremental = options.strategy == "sticky"
        self._intake = Intake(options.max_poll_records, options.max_partition_fetch_bytes)
        self._assignment = Assignment(group, wanted, self._intake, listener, incremental=self._incremental)
        self._failure: QueueError | None = None
        # The library waits for a commit for as long as the brokers are silent, and does nothing else meanwhile.
        self._caller = Caller(connection)
        settings = consumer_settings(options, connection.options, grows=wanted is None) | {"group.id": group}
        if member_id is not None:
            settings["group.instance.id"] = member_id
        self._client = connection.open(Consumer, settings)

    @property
    def held(self) -> frozenset[ProviderPartition]:
        return frozenset(self._assignment.held)

    def join(self, topics: Iterable[str]) -> None:
        given = self._assignment
        self._client.subscribe(sorted(topics), on_assign=given.assigned, on_revoke=given.revoked, on_lost=given.lost)

    def leave(self) -> None:
        """Release everything. The listener is not told: nobody took anything."""
        self._assignment.listener = None
        if not self._caller.is_free():
            # Nobody shall wait for that.
            threading.Thread(target=self._client.close, name="kafka-leave", daemon=True).start()
            return
        # Closed at once, a member that holds nothing or is just joining would not tell the group (librdkafka 2.16),
        # which would then wait for it until its session ends.
        self._client.unsubscribe()
        deadline = self._clock.monotonic() + _LEAVING_S
        while self._client.memberid() and self._clock.monotonic() < deadline:
            self._client.poll(_LOOK_AGAIN_S)
        self._client.close()

    def poll(self, duration_ms: int) -> list[Record]:
        if not self._caller.is_free(duration_ms / 1000):
            return []
        intake, paused = self._intake, self._assignment.paused
        if not intake.ready(paused) and (first := self._client.poll(duration_ms / 1000)) is not None:
            self._receive([first])
        # `consume` waits until it is full or its time is over, so only the first message may be waited for.
        if intake.ready(paused) and (room := intake.room(paused)):
            self._receive(self._client.consume(room, 0))
        self._raise_failure()
        messages = intake.take(paused)
        self._assignment.given_out(messages)
        return to_records(messages)

    def keep_alive(self) -> None:
        """Poll with all partitions paused. What a partition that is given meanwhile brings is kept for `poll`."""
        given = self._assignment
        if not self._caller.is_free():
            return
        reading = given.held - given.paused
        self._client.pause([to_kafka(place) for place in reading])
        if (message := self._client.poll(0)) is not None:
            self._receive([message])
        self._client.resume([to_kafka(place) for place in reading & given.held])

    def commit(self, offsets: Mapping[ProviderPartition, int] | None) -> None:
        """By default what was given out. While the group divides its partitions anew, waits until it may."""
        done = dict(self._assignment.positions) if offsets is None else offsets
        self._assignment.require(done)
        if done:
            passing = REBALANCING if self._incremental else frozenset[int]()
            self._persist(lambda: self._try_commit(done), passing, f"commit for group {self._group}")

    def pause(self, places: Set[ProviderPartition]) -> None:
        self._assignment.require(places)
        self._caller.require_free()
        self._client.pause([to_kafka(place) for place in places])
        self._assignment.paused |= places

    def resume(self, places: Set[ProviderPartition]) -> None:
        resumed = self._assignment.paused & places
        self._caller.require_free()
        self._client.resume([to_kafka(place) for place in resumed])
        self._assignment.paused -= resumed

    def seek(self, place: ProviderPartition, offset: int) -> None:
        self._assignment.require([place])
        if offset < 0:
            raise OffsetOutOfRange(f"cannot seek to {offset} in {place}; offsets begin at 0")
        self._caller.require_free()
        # A partition just assigned is not being fetched yet.
        self._persist(lambda: self._try_seek(place, offset), {NOT_STARTED}, f"seek to {offset} in {place}")
        self._intake.drop({place})
        self._assignment.positions[place] = offset

    def _receive(self, messages: Collection[Message]) -> None:
        """Keep the messages; an error among them is raised by the poll, which then gives them out next time."""
        errors = [error for message in messages if (error := message.error()) is not None]
        if errors:
            messages = [message for message in messages if message.error() is None]
        self._intake.add(messages)
        for error in errors:
            if error.code() in PASSING or error.retriable():
                logger.warning("group %s: %s; reading goes on when that is over", self._group, error.str())
            else:
                self._failure = self._connection.explain(error, f"read as group {self._group}")

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _persist(self, attempt: Callable[[], KafkaError | None], passing: Set[int], doing: str) -> None:
        """Try again while it fails for a reason that passes."""
        deadline = self._clock.monotonic() + self._connection.timeout_s
        while (error := attempt()) is not None:
            if error.code() not in passing:
                raise self._connection.explain(error, doing)
            if self._clock.monotonic() > deadline:
                raise ProviderUnavailable(
                    f"cannot {doing}: {error.str()}, for more than {self._connection.timeout_s:g} s; try again"
                )
            self._clock.sleep(_LOOK_AGAIN_S)

    def _try_commit(self, offsets: Mapping[ProviderPartition, int]) -> KafkaError | None:
        wanted = [to_kafka(place, offset) for place, offset in offsets.items()]

        def commit() -> list[TopicPartition]:
            return self._client.commit(offsets=wanted, asynchronous=False)

        try:
            # Inside the listener the library is at work on this thread, and would let no other in.
            answers = commit() if self._assignment.is_telling else self._caller.call(commit)
        except KafkaException as error:
            return error.args[0]  # type: ignore[no-any-return]
        return next((answer.error for answer in answers if answer.error is not None), None)

    def _try_seek(self, place: ProviderPartition, offset: int) -> KafkaError | None:
        try:
            self._client.seek(to_kafka(place, offset))
        except KafkaException as error:
            return error.args[0]  # type: ignore[no-any-return]
        return None
