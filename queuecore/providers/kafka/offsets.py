"""Where partitions begin and end: one request for each broker that leads some."""

from collections.abc import Iterable, Mapping

from kafka import KafkaAdminClient
from kafka.admin import OffsetSpec
from kafka.errors import BrokerResponseError, UnknownTopicOrPartitionError

from queuecore.errors import OffsetOutOfRange
from queuecore.providers.kafka.looking import check_existence
from queuecore.providers.kafka.topics import TopicAdmin
from queuecore.topics import ProviderPartition

Offsets = dict[ProviderPartition, int]


class OffsetAdmin(TopicAdmin):
    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        places = set(partitions)
        return self._ask(lambda client: beginnings(client, places), "ask for beginnings") if places else {}

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        places = set(partitions)
        return self._ask(lambda client: ends(client, places), "ask for ends") if places else {}

    def offsets_for_times(self, times_ms: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        def find(client: KafkaAdminClient) -> Offsets:
            # The ends first: what is stored between the two questions counts as later.
            last = ends(client, times_ms)
            # Negative times are Kafka's own marks of beginning and end.
            found = _list_offsets(client, {place: max(0, time) for place, time in times_ms.items()})
            return {place: last[place] if offset < 0 else offset for place, offset in found.items()}

        return self._ask(find, "ask for offsets by time") if times_ms else {}

    def delete_records(self, offsets: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        # To Kafka -1 means everything; to us it is below every offset.
        wanted = {place: max(0, offset) for place, offset in offsets.items()}

        def delete(client: KafkaAdminClient) -> Offsets:
            for place, end in ends(client, wanted).items():
                if wanted[place] > end:
                    raise OffsetOutOfRange(f"{place} ends at {end}; it has nothing up to {wanted[place]}", end=end)
            return _delete_records(client, wanted)

        return self._ask(delete, "delete records") if wanted else {}


def beginnings(client: KafkaAdminClient, places: Iterable[ProviderPartition]) -> Offsets:
    return _list_offsets(client, dict.fromkeys(places, OffsetSpec.EARLIEST))


def ends(client: KafkaAdminClient, places: Iterable[ProviderPartition]) -> Offsets:
    return _list_offsets(client, dict.fromkeys(places, OffsetSpec.LATEST))


def _delete_records(client: KafkaAdminClient, wanted: Mapping[ProviderPartition, int]) -> Offsets:
    """Where the partitions begin now."""
    try:
        answers = client.delete_records(wanted)
    except BrokerResponseError as error:
        if error.errno is not None:
            raise
        # Of several refusals the library drops the codes; one alone keeps its.
        answers = {place: client.delete_records({place: offset})[place] for place, offset in wanted.items()}
    return {place: answers[place]["low_watermark"] for place in wanted}


def _list_offsets(client: KafkaAdminClient, wanted: Mapping[ProviderPartition, int]) -> Offsets:
    """UnknownTopic where a partition does not exist."""
    try:
        found = client.list_partition_offsets(wanted)
    except UnknownTopicOrPartitionError:
        check_existence(client, wanted.keys())
        raise
    return {place: found[place].offset for place in wanted}
