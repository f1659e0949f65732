"""Topics come, change and go: one request for many."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import InvalidPartitionsError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ConfigurationError, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.kafka.agreeing import all_show
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.looking import Topic, existing_topics, read_settings, to_spec
from queuecore.providers.kafka.python_client import parse_refusal, seeking_controller
from queuecore.providers.kafka.replication import ReplicationAdmin
from queuecore.providers.kafka.topic_settings import changed_settings, check_copies, room_for, to_settings
from queuecore.providers.options import KafkaOptions
from queuecore.topics import check_no_clash, check_topic


@dataclass(frozen=True, slots=True)
class Change:
    """How a topic is, how it is to be, and what has to be set for that."""

    now: TopicSpec
    wanted: TopicSpec
    settings: Mapping[str, str]


class TopicAdmin(ReplicationAdmin):
    """Each change returns when the brokers show it."""

    def __init__(self, connection: Connection, max_request_size: int, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(connection, clock)
        self._max_request_size = max_request_size

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Checked first, so that what is refused creates nothing: InvalidName for a name that no topic can have or that
        differs from another's in '.' and '_' alone, ConfigurationError for copies that could never be written."""
        wanted = {spec.name: _with_copies(spec, self._connection.options) for spec in specs}
        for name, spec in wanted.items():
            check_topic(name)
            check_copies(spec)
        if wanted:
            self._ask(lambda client: self._create(client, wanted), f"create topics {_named(wanted)}")

    def alter_topics(self, specs: Iterable[TopicSpec]) -> None:
        """Checked first, so that what is refused changes nothing. What is there already is not sent."""
        if not (given := {spec.name: spec for spec in specs}):
            return
        doing = f"alter topics {_named(given)}"
        changes = self._ask(lambda client: _changes(client, given), doing)
        # A replica is there before it is required, and no longer required before it goes. Each step is repeated by
        # itself: what an earlier try has done would hide from the next what it has to wait for.
        for step in (self._add_replicas, self._alter_settings, self._remove_replicas, self._add_partitions):
            self._ask(partial(step, changes), doing)

    def delete_topics(self, names: Iterable[str]) -> None:
        if wanted := set(names):
            self._ask(lambda client: self._delete(client, wanted), f"delete topics {_named(wanted)}")

    def _create(self, client: KafkaAdminClient, wanted: Mapping[str, TopicSpec]) -> None:
        check_no_clash([*client.list_topics(), *wanted])
        new = {name: _new_topic(spec, self._max_request_size) for name, spec in wanted.items()}
        with seeking_controller():
            answer = client.create_topics(new, raise_errors=False)
        for topic in answer["topics"]:
            if topic["error_code"] not in (0, TopicAlreadyExistsError.errno):
                raise self._refused(topic["error_code"], topic["error_message"], f"create topic {topic['name']}")
        self._wait_for_leaders(client, dict.fromkeys(wanted, 1))

    def _delete(self, client: KafkaAdminClient, names: Iterable[str]) -> None:
        wanted = sorted(names)
        with seeking_controller():
            answer = client.delete_topics(wanted, raise_errors=False)
        for topic in answer["topics"]:
            if topic["error_code"] not in (0, UnknownTopicOrPartitionError.errno):
                raise self._refused(topic["error_code"], topic["error_message"], f"delete topic {topic['name']}")
        self._wait_until(
            lambda: all_show(client, wanted, lambda found: not found), f"topics {_named(wanted)} are not shown as gone"
        )

    def _add_replicas(self, changes: Iterable[Change], client: KafkaAdminClient) -> None:
        self._replicate(
            client, {one.wanted.name: n for one in changes if (n := _copies(one.wanted)) > _copies(one.now)}
        )

    def _remove_replicas(self, changes: Iterable[Change], client: KafkaAdminClient) -> None:
        self._replicate(
            client, {one.wanted.name: n for one in changes if (n := _copies(one.wanted)) < _copies(one.now)}
        )

    def _alter_settings(self, changes: Iterable[Change], client: KafkaAdminClient) -> None:
        resources = [
            ConfigResource(ConfigResourceType.TOPIC, one.wanted.name, dict(one.settings))
            for one in changes
            if one.settings
        ]
        if not resources:
            return
        outcomes = client.alter_configs(resources, raise_on_unknown=False, incremental=True)
        for name, outcome in outcomes["topic"].items():
            if outcome != "OK":
                raise self._refused(*parse_refusal(outcome), f"alter topic {name}")

    def _add_partitions(self, changes: Iterable[Change], client: KafkaAdminClient) -> None:
        counts = {one.wanted.name: n for one in changes if (n := one.wanted.partitions) > one.now.partitions}
        if not counts:
            return
        with seeking_controller():
            answer = client.create_partitions(counts, raise_errors=False)
        for topic in answer.results:
            # A number that is no increase is refused: an earlier try, or somebody else, has added them.
            if topic.error_code not in (0, InvalidPartitionsError.errno):
                raise self._refused(topic.error_code, topic.error_message, f"add partitions to topic {topic.name}")
        self._wait_for_leaders(client, counts)

    def _wait_for_leaders(self, client: KafkaAdminClient, least_partitions: Mapping[str, int]) -> None:
        def have_leaders(found: Mapping[str, Topic]) -> bool:
            return all(
                name in found and len(found[name].partitions) >= least and found[name].has_leaders
                for name, least in least_partitions.items()
            )

        self._wait_until(
            lambda: all_show(client, least_partitions, have_leaders),
            f"topics {_named(least_partitions)} are known but lack a leader",
        )


def _changes(client: KafkaAdminClient, given: Mapping[str, TopicSpec]) -> Sequence[Change]:
    topics = existing_topics(client, given)
    kept = read_settings(client, topics)
    changes = []
    for name, spec in given.items():
        if name not in kept:
            raise UnknownTopic(f"topic {name!r} has just been deleted; create the topic first", topic=name)
        now = to_spec(name, topics[name], kept[name])
        wanted = _with_copies(spec, now)
        _check_change(now, wanted)
        changes.append(Change(now, wanted, changed_settings(kept[name], wanted)))
    return changes


def _check_change(now: TopicSpec, wanted: TopicSpec) -> None:
    if wanted.partitions < now.partitions:
        raise ConfigurationError(
            f"topic {now.name!r} has {now.partitions} partitions and cannot have {wanted.partitions}; "
            "make a new topic, or keep them"
        )
    # What somebody else set so may stay so.
    if (now.replication_factor, now.min_insync_replicas) != (wanted.replication_factor, wanted.min_insync_replicas):
        check_copies(wanted)


def _with_copies(spec: TopicSpec, others: TopicSpec | KafkaOptions) -> TopicSpec:
    """The spec, with what others say of copies where it says nothing."""
    return replace(
        spec,
        replication_factor=spec.replication_factor or others.replication_factor,
        min_insync_replicas=spec.min_insync_replicas or others.min_insync_replicas,
    )


def _copies(spec: TopicSpec) -> int:
    return spec.replication_factor or 1


def _new_topic(spec: TopicSpec, max_request_size: int) -> dict[str, object]:
    return {
        "num_partitions": spec.partitions,
        "replication_factor": _copies(spec),
        "configs": room_for(max_request_size) | to_settings(spec),
    }


def _named(topics: Iterable[str]) -> str:
    return ", ".join(sorted(topics))
