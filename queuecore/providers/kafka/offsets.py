"""Where partitions begin and end: one request for many."""

from collections.abc import Iterable, Mapping

from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from queuecore.providers.kafka.asking import failed_with
from queuecore.providers.kafka.codes import NO_LEADERS
from queuecore.providers.kafka.records import from_kafka, to_kafka
from queuecore.providers.kafka.topics import TopicAdmin
from queuecore.topics import ProviderPartition

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class OffsetAdmin(TopicAdmin):
    def beginning_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return self._offsets(dict.fromkeys(partitions, _EARLIEST))

    def end_offsets(self, partitions: Iterable[ProviderPartition]) -> Mapping[ProviderPartition, int]:
        return self._offsets(dict.fromkeys(partitions, _LATEST))

    def offsets_for_times(self, times_ms: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        """The ends are asked first: what is stored between the two questions counts as later."""
        ends = self.end_offsets(times_ms)
        # The library takes negative times for its own marks of beginning and end.
        specs = {place: OffsetSpec.for_timestamp(max(0, time)) for place, time in times_ms.items()}
        found = self._offsets(specs)
        return {place: ends[place] if offset < 0 else offset for place, offset in found.items()}

    def delete_records(self, offsets: Mapping[ProviderPartition, int]) -> Mapping[ProviderPartition, int]:
        if not offsets:
            return {}
        self.check(offsets)
        # To Kafka -1 means everything; to us it is below every offset.
        request = [to_kafka(place, max(0, offset)) for place, offset in offsets.items()]
        futures = self._client.delete_records(request, request_timeout=self._timeout_s)
        return {
            from_kafka(place): self._answer(future, f"delete records of {from_kafka(place)}").low_watermark
            for place, future in futures.items()
        }

    def _offsets(self, wanted: Mapping[ProviderPartition, OffsetSpec]) -> dict[ProviderPartition, int]:
        if not wanted:
            return {}
        request = {to_kafka(place): spec for place, spec in wanted.items()}
        futures = self._client.list_offsets(request, request_timeout=self._timeout_s)
        if any(failed_with(NO_LEADERS, future) for future in futures.values()):
            self.check(wanted)
        return {place: self._answer(futures[to_kafka(place)], f"ask for offsets of {place}").offset for place in wanted}
