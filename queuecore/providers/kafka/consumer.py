"""A group's reading, as a member of a Kafka consumer group."""

from collections.abc import Callable, Collection, Iterable, Mapping

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import Displaced, ProviderUnavailable, QueueError
from queuecore.groups.epochs import check_epochs
from queuecore.groups.members import check_member_id
from queuecore.groups.offsets import check_offsets
from queuecore.messages import Record
from queuecore.providers.base import AssignmentListener, Epochs
from queuecore.providers.kafka.assignment import not_owner
from queuecore.providers.kafka.connection import Connection, logger
from queuecore.providers.kafka.membership import Membership
from queuecore.providers.options import ConsumerOptions
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class KafkaConsumer:
    """Reads the partitions the group gave to it, as long as it gives them.

    The brokers give each partition of a topic to one member. Where only some partitions inside a topic are wanted
    (`use_internal_partition`), the member still joins for the whole topic and leaves the others unread, so that
    ownership is the brokers' everywhere and a displaced member's commit is refused. Hence all consumers of one
    group must want the same partitions of a topic: what the brokers give to one that does not want it, nobody reads.
    Members that want different partitions have them as topics of their own, or a group for each.

    A change of the subscription is made in the next poll. With `sticky`, and with the protocol `consumer`, it touches
    only what changes. With other strategies all partitions are revoked and given anew when the topics change, or when
    more of a topic is wanted. A change between named partitions and a whole topic begins anew, and so does one of a
    member whose place was taken: what it held is told as lost.

    How epochs fence here is told in `epochs`.

    The library gives signs of life by itself: a process that is gone is missed after `session_timeout_ms`, one that
    only stops polling after `max_poll_interval_ms`. With the protocol `consumer` sessions are the brokers' to set, and
    one that only stops polling is missed when its session has ended as well. While a `sticky` group divides its
    partitions anew, a commit waits until all members have polled. While the brokers are unreachable `poll` gives
    nothing, and goes on by itself when they are back.

    With a member id it is a static member of the classic protocol. Stopped, it keeps its place in the group until its
    session ends, so that one which comes back in time gets its partitions without a rebalance; to give them to others
    at once, unsubscribe first.

    The library takes such a member for displaced though nobody came: when it has heard nothing for a session it forgets
    its name at the brokers, and asks them for something without one (librdkafka 2.16; its issue 3437). After that it
    does nothing any more. Where the brokers still have the name, the next poll joins anew: what was held is told as
    lost, and what was not committed comes again.
    """

    def __init__(
        self,
        connection: Connection,
        group: str,
        topic: str,
        options: ConsumerOptions,
        check: Callable[[Iterable[ProviderPartition]], None],
        member_id: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        is_member: Callable[[str, str], bool],
    ) -> None:
        """`check` raises UnknownTopic; `is_member` says whether a group has a member of this name at the brokers."""
        self._connection = connection
        self._group = group
        self._topic = topic
        self._options = options
        self._check = check
        self._is_member = is_member
        self._member_id = check_member_id(member_id)
        self._clock = clock
        self._membership: Membership | None = None
        # What was subscribed last, and for whom.
        self._wanted: frozenset[ProviderPartition] | None = None
        self._listener: AssignmentListener | None = None
        self._epochs: Epochs = {}
        self._stopped = False

    @property
    def topic(self) -> str:
        return self._topic

    @property
    def partitions(self) -> frozenset[ProviderPartition]:
        return frozenset() if self._membership is None else self._membership.held

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def subscribe(
        self,
        partitions: Iterable[TopicPartitionInfo] | None = None,
        listener: AssignmentListener | None = None,
        epochs: Epochs | None = None,
    ) -> None:
        if self._stopped:
            raise QueueError("this consumer has been stopped; open a new one")
        if partitions is None and not self._topic:
            raise QueueError("this consumer was made for no topic; say which partitions it shall read")
        wanted = None if partitions is None else frozenset(info.place for info in partitions)
        fences = check_epochs(wanted, epochs)
        self._check([ProviderPartition(self._topic, 0)] if wanted is None else wanted)
        self._wanted, self._listener, self._epochs = wanted, listener, fences
        if (member := self._membership) is not None and member.can_want(wanted) and self._has_place(member):
            member.want(wanted, listener, fences)
        else:
            self._join_anew()

    def poll(self, duration_ms: int) -> list[Record]:
        member = self._member()
        try:
            return member.poll(duration_ms)
        except Displaced:
            try:
                if not self._has_place(member):
                    raise
            except ProviderUnavailable:
                return []  # the next poll asks again
        logger.warning("group %s: %r has heard nothing for a session, and joins again", self._group, self._member_id)
        self._join_anew()
        return []

    def commit(self, offsets: Mapping[ProviderPartition, int] | None = None) -> None:
        check_offsets(offsets or {})
        if (member := self._membership) is not None:
            try:
                member.commit(offsets)
            except Displaced as error:
                if not self._has_place(member):
                    raise
                raise ProviderUnavailable(
                    f"cannot commit for group {self._group}: {self._member_id!r} has heard nothing for a session; it "
                    "joins again with its next poll, and what was given out comes again"
                ) from error
        elif offsets:
            raise not_owner(self._group, next(iter(offsets)))

    def epochs_of(self, places: Collection[ProviderPartition]) -> Epochs:
        """For a transaction that commits offsets of these: under which epochs they are held."""
        return {} if self._membership is None else self._membership.fence.of(places)

    def group_metadata(self, places: Collection[ProviderPartition]) -> bytes:
        """Who this member is now, for a transaction that commits offsets of these. NotOwner unless all are held."""
        if self._membership is None:
            raise not_owner(self._group, next(iter(places)))
        return self._membership.group_metadata(places)

    def pause(self, partitions: Iterable[ProviderPartition]) -> None:
        self._member().pause(frozenset(partitions))

    def resume(self, partitions: Iterable[ProviderPartition]) -> None:
        self._member().resume(frozenset(partitions))

    def seek(self, partition: ProviderPartition, offset: int) -> None:
        self._member().seek(partition, offset)

    def keep_alive(self) -> None:
        if self._membership is not None:
            self._membership.keep_alive()

    def unsubscribe(self) -> None:
        self._leave(keeps_place=False)

    def stop(self) -> None:
        self._stopped = True
        self._leave(keeps_place=self._member_id is not None)

    def _has_place(self, member: Membership) -> bool:
        """Whether nobody has taken it, by what the brokers say. The library hears of that only with its next heartbeat,
        and a displaced consumer that subscribes again shall take its place back."""
        return self._member_id is None or self._is_member(self._group, member.member)

    def _join_anew(self) -> None:
        lost, wanted = self.partitions, self._wanted
        self.unsubscribe()
        topics = {self._topic} if wanted is None else {place.topic for place in wanted}
        if topics:
            who = (self._group, self._member_id)
            member = Membership(self._connection, *who, wanted, self._options, self._listener, self._clock, lost)
            member.fence.want(self._epochs)
            member.join(topics)
            self._membership = member

    def _leave(self, *, keeps_place: bool) -> None:
        member, self._membership = self._membership, None
        if member is not None:
            member.leave(keeps_place=keeps_place)

    def _member(self) -> Membership:
        if self._membership is None:
            raise QueueError("this consumer reads no partitions; call subscribe first")
        return self._membership
