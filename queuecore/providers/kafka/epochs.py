"""Epochs on Kafka: in the metadata of each commit, as `epoch=17`.

Brokers compare no metadata. That no commit of a lower epoch takes effect after one of a higher follows from what they
do compare, and from when we look. A partition comes to a member with a new generation of the group, or with a new name
behind a static member id; commits carry both, and brokers refuse those of an earlier generation and of a displaced
member, and a member commits only what it holds. So nobody else can commit the partition from when we have joined until
it is taken from us, and what we read of it in between is all there is. We read before the first record is fetched, and
give the partition back where a higher epoch is there. Who comes later under a lower epoch reads in the same way, and
finds ours if we have committed.

What was committed in a transaction that is undecided is waited for, as long as the isolation is `read_committed`.

Other tools know nothing of this: offsets that they reset, as commits of consumers without an epoch, come without
metadata, and the partition counts as never committed under an epoch. Metadata of others is no epoch.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from queuecore.providers.base import Epochs
from queuecore.providers.kafka.records import from_kafka, to_kafka
from queuecore.topics import ProviderPartition

_NAME: Final = "epoch"
_SEPARATOR: Final = "="
# Kafka's own limit is 4096 bytes for all of the metadata.
_MOST_DIGITS: Final = 20


class Kept(NamedTuple):
    """What a group has committed of a partition; None: nothing, or under no epoch."""

    offset: int | None
    epoch: int | None


def to_metadata(epoch: int) -> str:
    return f"{_NAME}{_SEPARATOR}{epoch}"


def parse_epoch(metadata: str | None) -> int | None:
    # librdkafka stores the NUL at the end of its string as well.
    prefix, _, number = (metadata or "").rstrip("\0").partition(_SEPARATOR)
    is_ours = prefix == _NAME and number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    return int(number) if is_ours else None


def to_commit(place: ProviderPartition, offset: int, epochs: Epochs) -> TopicPartition:
    if (epoch := epochs.get(place)) is None:
        return to_kafka(place, offset)
    return TopicPartition(place.topic, place.partition, offset, to_metadata(epoch))


def read_kept(
    client: Consumer, places: Collection[ProviderPartition], timeout_s: float
) -> dict[ProviderPartition, Kept]:
    """As the group has committed them by now. KafkaException where that cannot be said in time."""
    answers = client.committed([to_kafka(place) for place in places], timeout_s)
    return {
        from_kafka(one): Kept(one.offset if one.offset >= 0 else None, parse_epoch(one.metadata)) for one in answers
    }
