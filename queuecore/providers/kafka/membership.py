"""One stay in a group, from joining it to leaving it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from queuecore.clock import Clock
from queuecore.errors import ConfigurationError, OffsetOutOfRange, ProviderUnavailable, QueueError
from queuecore.groups.epochs import Fence
from queuecore.groups.members import displaced
from queuecore.messages import Record
from queuecore.providers.base import AssignmentListener, Epochs
from queuecore.providers.kafka.assignment import Assignment, not_owner
from queuecore.providers.kafka.codes import (
    FATAL,
    NOT_KNOWN,
    NOT_STARTED,
    PASSING,
    PLACE_TAKEN,
    REBALANCING,
    TOO_LATE,
)
from queuecore.providers.kafka.connection import Connection, logger
from queuecore.providers.kafka.epochs import to_commit
from queuecore.providers.kafka.following import Following
from queuecore.providers.kafka.intake import Intake
from queuecore.providers.kafka.patience import Caller
from queuecore.providers.kafka.records import to_kafka
from queuecore.providers.kafka.settings import consumer_settings, protocol_of
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import ProviderPartition

# How long a rebalance under way may keep a member that wants to leave.
_LEAVING_S = 5.0
_LOOK_AGAIN_S = 0.02
# Few enough to be in the processor's cache still when they are decoded.
_AT_ONCE = 512


class Membership:
    """A library consumer and what the group has given to it. For one thread.

    `wanted` is None for whole topics, as they grow. `lost` is what the consumer held in an earlier stay that ended
    without its listener: the first poll tells.
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
        lost: frozenset[ProviderPartition] = frozenset(),
    ) -> None:
        self._connection = connection
        self._group = group
        self._member_id = member_id
        self._clock = clock
        self._protocol = protocol_of(connection.options, member_id)
        # The brokers change generations under a member that keeps its partitions.
        self._incremental = options.strategy == "sticky" or self._protocol == "consumer"
        self._intake = Intake(options.max_poll_records, options.max_partition_fetch_bytes)
        self._assignment = Assignment(
            group, wanted, self._intake, listener, incremental=self._incremental, reset=options.auto_offset_reset
        )
        self._grows = wanted is None
        self._lost = lost
        self._failure: QueueError | None = None
        # Whether another consumer has joined with our member id. The library does nothing any more then.
        self._is_displaced = False
        # The brokers' name for this member in its last poll that it had one in.
        self._member = ""
        # The library waits for a commit for as long as the brokers are silent, and does nothing else meanwhile.
        self._caller = Caller(connection)
        settings = consumer_settings(options, connection.options, grows=wanted is None, member_id=member_id)
        self._client = connection.open(Consumer, settings | {"group.id": group})
        self._following = Following(self._client, self._assignment, incremental=self._incremental)

    @property
    def held(self) -> frozenset[ProviderPartition]:
        return frozenset(self._assignment.held)

    @property
    def fence(self) -> Fence:
        return self._assignment.fence

    @property
    def member(self) -> str:
        """The brokers' name for this member; empty while it has none. Of one that the library takes for displaced, the
        last that it had: the library forgets it."""
        return self._member if self._is_displaced else str(self._client.memberid() or "")

    def can_want(self, wanted: Set[ProviderPartition] | None) -> bool:
        """Whether this can become what is wanted. That topics grow is noticed only where that is set from the start."""
        return not self._is_displaced and self._caller.is_free() and self._grows == (wanted is None)

    def want(self, wanted: Set[ProviderPartition] | None, listener: AssignmentListener | None, epochs: Epochs) -> None:
        """Something else, from the next poll on."""
        self._assignment.want(wanted, listener)
        self.fence.want(epochs)

    def join(self, topics: Iterable[str]) -> None:
        self._following.join(topics)

    def leave(self, *, keeps_place: bool = False) -> None:
        """Release everything. The listener is not told: nobody took anything. `keeps_place`: the group waits until the
        session ends for one that comes with the same member id."""
        self._assignment.listener = None
        if self._protocol == "classic" and not keeps_place and self._caller.is_free():
            self._say_goodbye()
        self._caller.end(self._client.close)

    def poll(self, duration_ms: int) -> list[Record]:
        if not self._caller.is_free(duration_ms / 1000):
            return []
        self._require_place()
        self._tell_lost()
        if self._following.is_behind:
            self._follow()
        intake, paused = self._intake, self._assignment.paused
        if not intake.ready(paused) and (first := self._client.poll(duration_ms / 1000)) is not None:
            self._receive([first])
        # `consume` waits until it is full or its time is over, so only the first message may be waited for.
        room = intake.room(paused) if intake.ready(paused) else 0
        while room > 0 and (messages := self._client.consume(min(room, _AT_ONCE), 0)):
            self._receive(messages)
            room -= len(messages)
        self._assignment.raise_trouble()
        self._require_place()
        self._member = self._client.memberid() or self._member
        self._raise_failure()
        self.fence.raise_stale()
        records, ends = intake.take(paused)
        self._assignment.positions |= ends
        return records

    def keep_alive(self) -> None:
        """Poll with all partitions paused. What a partition that is given meanwhile brings is kept for `poll`."""
        given = self._assignment
        if self._is_displaced or not self._caller.is_free():
            return
        reading = given.held - given.paused
        self._client.pause([to_kafka(place) for place in reading])
        try:
            if (message := self._client.poll(0)) is not None:
                self._receive([message])
        finally:
            self._client.resume([to_kafka(place) for place in reading & (given.held - given.paused)])
        given.raise_trouble()

    def commit(self, offsets: Mapping[ProviderPartition, int] | None) -> None:
        """By default what was given out. While the group divides its partitions anew, waits until it may."""
        done = dict(self._assignment.positions) if offsets is None else offsets
        if done:
            passing = REBALANCING if self._incremental else frozenset[int]()
            self._persist(lambda: self._try_commit(done), passing, f"commit for group {self._group}")

    def group_metadata(self, places: Collection[ProviderPartition]) -> bytes:
        """Who this member is, for the brokers to refuse offsets of one that was displaced. NotOwner unless all are
        held."""
        self._assignment.require(places)
        self._caller.require_free()
        metadata: bytes = self._client.consumer_group_metadata()
        self._require_member(places)
        return metadata

    def pause(self, places: Set[ProviderPartition]) -> None:
        self._assignment.require(places)
        self._caller.require_free()
        self._client.pause([to_kafka(place) for place in places - self._assignment.starts.keys()])
        self._assignment.paused |= places

    def resume(self, places: Set[ProviderPartition]) -> None:
        resumed = self._assignment.paused & places
        self._caller.require_free()
        self._client.resume([to_kafka(place) for place in resumed - self._assignment.starts.keys()])
        self._assignment.paused -= resumed

    def seek(self, place: ProviderPartition, offset: int) -> None:
        self._assignment.require([place])
        self._caller.require_free()
        self._check_stored(place, offset)
        if place in self._assignment.starts:
            self._assignment.starts[place] = offset
            return
        # A partition just assigned is not being fetched yet.
        self._persist(lambda: self._try_seek(place, offset), {NOT_STARTED}, f"seek to {offset} in {place}")
        self._intake.drop({place})
        self._assignment.positions.pop(place, None)

    def _follow(self) -> None:
        """Bring what is held in step with what is wanted."""
        try:
            self._following.catch_up(self._start_at)
        except KafkaException as error:
            failure = self._explain(error.args[0], f"read as group {self._group}")
            self._require_place()
            raise failure from error
        self._assignment.raise_trouble()

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, frozenset()
        if lost:
            self._assignment.tell_lost(lost)
            self._assignment.raise_trouble()

    def _start_at(self, place: ProviderPartition, offset: int) -> None:
        self._persist(lambda: self._try_seek(place, offset), {NOT_STARTED}, f"begin at {offset} in {place}")

    def _receive(self, messages: Sequence[Message]) -> None:
        """Keep the messages; an error among them is raised by the poll, which then gives them out next time."""
        self._keep(messages)
        if aside := self._assignment.aside:
            self._intake.drop(aside)

    def _keep(self, messages: Sequence[Message]) -> None:
        if not any(map(Message.error, messages)):
            self._intake.add(messages)
            return
        self._intake.add([message for message in messages if message.error() is None])
        for message in messages:
            if (error := message.error()) is None:
                continue
            if error.code() == TOO_LATE:
                logger.warning("group %s: %s; it joins again with its next poll", self._group, error.str())
            elif error.code() in PASSING or error.retriable():
                self._connection.outage.report(error)
            elif (cause := self._cause(message, error)) is not None:
                self._failure = self._explain(cause, f"read as group {self._group}")

    def _cause(self, message: Message, error: KafkaError) -> KafkaError | None:
        """What is wrong, if anything is. Of a topic that it misses the library need not have asked the brokers: right
        after it was told to read another one, an answer to an earlier question is enough for it to complain."""
        topic, partition = message.topic(), message.partition()
        if error.code() not in NOT_KNOWN or topic is None:
            return error
        try:
            told = self._client.list_topics(topic, self._connection.timeout_s).topics[topic]
        except KafkaException as failure:
            return failure.args[0]  # type: ignore[no-any-return]
        if told.error is not None or (partition is not None and partition >= len(told.partitions)):
            return told.error or error
        logger.debug("group %s: %s; but the brokers have it", self._group, error.str())
        self._following.doubt(topic)
        return None

    def _explain(self, error: KafkaError, doing: str) -> QueueError:
        if error.code() not in {FATAL, PLACE_TAKEN}:
            return self._connection.explain(error, doing)
        if self._member_id is None:
            return ConfigurationError(f"cannot {doing}: {error.str()}; change group_protocol or strategy")
        self._is_displaced = True
        return displaced(self._group, self._member_id)

    def _require_member(self, places: Iterable[ProviderPartition]) -> None:
        """NotOwner where the brokers have put this member out, which the next poll will tell: while a group has no
        members they take offsets from anybody."""
        if not self._client.memberid():
            raise not_owner(self._group, next(iter(places)))

    def _require_place(self) -> None:
        """Displaced where another has taken it. Fighting back is the caller's decision: it may subscribe again."""
        if self._is_displaced:
            self._assignment.lose_everything()
            self._assignment.raise_trouble()
            raise displaced(self._group, self._member_id)

    def _say_goodbye(self) -> None:
        """Closed at once, a member that holds nothing or is just joining would not tell the group (librdkafka 2.16),
        which would then wait for it until its session ends."""
        try:
            self._client.unsubscribe()
        except KafkaException as error:
            # One that was displaced has nobody to say goodbye to.
            if error.args[0].code() != FATAL:
                raise
            return
        deadline = self._clock.monotonic() + _LEAVING_S
        while self._client.memberid() and self._clock.monotonic() < deadline:
            self._client.poll(_LOOK_AGAIN_S)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _persist(self, attempt: Callable[[], KafkaError | None], passing: Set[int], doing: str) -> None:
        """Try again while it fails for a reason that passes."""
        deadline = self._clock.monotonic() + self._connection.timeout_s
        while (error := attempt()) is not None:
            if error.code() not in passing:
                raise self._explain(error, doing)
            if self._clock.monotonic() > deadline:
                raise ProviderUnavailable(
                    f"cannot {doing}: {error.str()}, for more than {self._connection.timeout_s:g} s; try again"
                )
            self._clock.sleep(_LOOK_AGAIN_S)

    def _try_commit(self, offsets: Mapping[ProviderPartition, int]) -> KafkaError | None:
        """Whether this member still may is asked each time: meanwhile the brokers may have put it out."""
        epochs = self.fence.of(offsets)
        wanted = [to_commit(place, offset, epochs) for place, offset in offsets.items()]
        self._assignment.require(offsets)
        if not self._assignment.is_telling:
            self._caller.require_free()
        self._require_member(offsets)

        def commit() -> list[TopicPartition]:
            return self._client.commit(offsets=wanted, asynchronous=False)

        try:
            # Inside the listener the library is at work on this thread, and would let no other in.
            answers = commit() if self._assignment.is_telling else self._caller.call(commit)
        except KafkaException as error:
            return error.args[0]  # type: ignore[no-any-return]
        return next((answer.error for answer in answers if answer.error is not None), None)

    def _check_stored(self, place: ProviderPartition, offset: int) -> None:
        """OffsetOutOfRange for one the library would go to the beginning instead of."""
        try:
            beginning, end = self._client.get_watermark_offsets(to_kafka(place), self._connection.timeout_s)
        except KafkaException as error:
            raise self._connection.explain(error, f"seek to {offset} in {place}") from error
        if not beginning <= offset <= end:
            raise OffsetOutOfRange(
                f"{place} has offsets {beginning} to {end}; there is no {offset} to go to", beginning=beginning
            )

    def _try_seek(self, place: ProviderPartition, offset: int) -> KafkaError | None:
        try:
            self._client.seek(to_kafka(place, offset))
        except KafkaException as error:
            return error.args[0]  # type: ignore[no-any-return]
        return None
