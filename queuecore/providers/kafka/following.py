"""The library's subscription, kept in step with what its user wants."""

from collections.abc import Iterable

from confluent_kafka import Consumer

from queuecore.providers.kafka.assignment import Assignment, Seek


class Following:
    """For the consumer's thread, outside the library's callbacks. KafkaException where the library refuses."""

    def __init__(self, client: Consumer, assignment: Assignment, *, incremental: bool) -> None:
        self._client = client
        self._assignment = assignment
        self._incremental = incremental
        self._topics: frozenset[str] = frozenset()
        # Whether the library may have left one of them out.
        self._is_doubtful = False

    @property
    def is_behind(self) -> bool:
        """Whether `catch_up` has something to do."""
        return self._is_doubtful or self._assignment.is_behind

    def doubt(self, topic: str) -> None:
        """The library misses a topic that there is. Where it knew no broker to ask when it was told of it, it joined
        without, and would ask again in five minutes (librdkafka 2.16): told once more, it joins with it. Of what the
        group has given to us it may complain as well, when brokers come back: that it has joined with."""
        is_left_out = topic in self._topics and not self._assignment.is_given(topic)
        self._is_doubtful = self._is_doubtful or is_left_out

    def join(self, topics: Iterable[str]) -> None:
        """Or, when it is a member: have the group give these topics from now on. With an incremental strategy what it
        has of them stays, otherwise all is revoked and given anew."""
        self._topics = frozenset(topics)
        self._is_doubtful = False
        given = self._assignment
        self._client.subscribe(
            sorted(self._topics), on_assign=given.assigned, on_revoke=given.revoked, on_lost=given.lost
        )

    def catch_up(self, seek: Seek) -> None:
        """First give up what is wanted no longer, while the group still takes commits of it; then the topics; then have
        what the group has given already."""
        self._assignment.put_aside(self._client)
        if self._is_doubtful or not self._has_topics():
            self._change_topics()
        if not self._needs_rebalance():
            self._assignment.take_up(self._client, seek)

    def _wanted_topics(self) -> frozenset[str]:
        wanted = self._assignment.wanted
        return self._topics if wanted is None else frozenset(place.topic for place in wanted)

    def _has_topics(self) -> bool:
        return self._wanted_topics() == self._topics and not self._needs_rebalance()

    def _needs_rebalance(self) -> bool:
        """Whether the library takes more of what the group gave only when all is given anew."""
        return not self._incremental and self._assignment.needs_loading

    def _change_topics(self) -> None:
        if topics := self._wanted_topics():
            self.join(topics)
        else:
            self._topics = topics
            self._client.unsubscribe()
