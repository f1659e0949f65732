"""Whether the topics that a queue names are its to use: no topic holds two kinds of things."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from queueapi.errors import InvalidInput
from queueapi.models import Queue
from queueapi.selectors.topics import queues_naming
from queuecore.errors import InvalidName
from queuecore.groups.lag import describe_existing
from queuecore.metrics import METRICS_TOPIC
from queuecore.providers.base import Provider, TopicSpec
from queuecore.topics import ProviderPartition, check_no_clash, check_topic, payload_partition

_MESSAGES: Final = "messages"
_LETTERS: Final = "dead letters"
_PAYLOADS: Final = "payloads of dead letters"
_STATE: Final = "the state"


def check_topics(queue: Queue, provider: Provider) -> None:
    """InvalidInput, InvalidName."""
    for field in ("dlq_topic", "state_topic"):
        if name := getattr(queue, field):
            _check_name(field, name)
    _check_uses(queue)
    admin, own = provider.admin(), [queue.letter_topic, *queue.state_topic_names()]
    # All names are asked for where somebody chose one: there may be a hundred thousand.
    names = admin.topic_names() if queue.dlq_topic or queue.state_topic else own
    described = describe_existing(admin, {*own}.intersection(names))
    there = {name: one.spec for name, one in described.items()}
    if queue.dlq_topic:
        check_no_confusion([queue.dlq_topic], names)
    _check_letters(queue, there)
    if queue.state_topic:
        _check_state(queue, provider, there, names)


def check_no_confusion(names: Iterable[str], there: Iterable[str]) -> None:
    """InvalidName where Kafka would take one of these for another."""
    wanted = {name.replace(".", "_"): name for name in names}
    taken = {alike: name for name in there if (alike := name.replace(".", "_")) in wanted}
    for name in wanted.values():
        check_no_clash([taken.get(name.replace(".", "_"), name), name])


def _check_name(field: str, topic: str) -> None:
    try:
        check_topic(topic)
    except InvalidName as error:
        raise InvalidInput(f"{field}: {error.message}") from error
    if topic == METRICS_TOPIC:
        raise InvalidInput(f"{field}: {topic} is where the runtime reports to; name another topic")


def _check_uses(queue: Queue) -> None:
    """Queues may share a topic for letters, and nothing else."""
    own = list(_uses(queue))
    others = queues_naming(name for _, _, name in own).exclude(pk=queue.pk)
    taken = {name: (use, other) for other in others for _, use, name in _uses(other)}
    for field, use, name in own:
        held, other = taken.setdefault(name, (use, queue))
        if held != use or (other is not queue and use not in (_LETTERS, _PAYLOADS)):
            raise InvalidInput(f"{field}: {name} holds {held} of queue {other.name}; name another topic")


def _uses(queue: Queue) -> Iterator[tuple[str, str, str]]:
    """Each topic of the queue's, with the field that names it and what it holds."""
    yield from (("topic", _MESSAGES, name) for name in queue.topic_names())
    field = "dlq_topic" if queue.dlq_topic else "topic"
    yield field, _LETTERS, queue.letter_topic
    yield field, _PAYLOADS, payload_partition(ProviderPartition(queue.letter_topic, 0)).full_topic_name
    if queue.state_topic:
        yield from (("state_topic", _STATE, name) for name in (queue.state_topic, *queue.state_topic_names()))


def _check_letters(queue: Queue, there: Mapping[str, TopicSpec]) -> None:
    topic, field = queue.letter_topic, "dlq_topic" if queue.dlq_topic else "topic"
    if (spec := there.get(topic)) is None:
        return
    if spec.is_compacted:
        raise InvalidInput(
            f"{field}: {topic} is a compacted topic, which would keep only the last letter of each key; name another"
        )
    if spec.partitions < queue.letter_topic_partitions:
        raise InvalidInput(
            f"{field}: {topic} is there with {spec.partitions} partitions, and letters of {queue.name} need one for "
            f"each of its {queue.letter_topic_partitions}; name another topic"
        )


def _check_state(queue: Queue, provider: Provider, there: Mapping[str, TopicSpec], all_names: Iterable[str]) -> None:
    if not provider.capabilities.compaction:
        raise InvalidInput("state_topic: this provider cannot compact topics, which state needs; leave it empty")
    names = queue.state_topic_names()
    check_no_confusion(names, all_names)
    for spec in (there[name] for name in names if name in there):
        if not spec.is_compacted or spec.partitions != 1:
            raise InvalidInput(
                f"state_topic: {spec.name} is there, and is no compacted topic with one partition; name another"
            )
