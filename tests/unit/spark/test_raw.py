"""Events as Arrow's arrays, however a provider gives them."""

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from queuecore.messages import QueueMessage
from queuecore.metrics import METRICS_TOPIC
from queuecore.providers.base import DataColumn, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.batch import encode_body
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition
from workers.spark.raw import RawEvents, of_column, of_records, together

PLACE = ProviderPartition(METRICS_TOPIC, 0)
_data = st.binary(min_size=1, max_size=300)
_batches = st.lists(st.lists(_data, min_size=1, max_size=20) | st.just([b"alike"] * 9), min_size=1, max_size=3)


@given(_batches)
def test_columns_hold_what_records_hold(batches: list[list[bytes]]) -> None:
    with TemporaryDirectory() as folder, closing(LogProvider(Path(folder))) as provider:
        provider.admin().create_topics([TopicSpec(METRICS_TOPIC, 1)])
        with closing(PartitionWriter(Path(folder), PLACE)) as writer:
            for batch in batches:
                writer.append(encode_body([QueueMessage(None, data) for data in batch]), 0, sync=False)
        with closing(provider.reader()) as reader:
            records = of_records(0, reader.read(PLACE, 0, 1_000))
            parts: list[RawEvents] = []
            while column := reader.read_data(PLACE, sum(len(part.offsets) for part in parts)):
                parts.append(of_column(0, column))
    assert together(parts) == records
    assert records.data.to_pylist() == [data for batch in batches for data in batch]
    assert sum(part.size for part in parts) == sum(map(len, records.data.to_pylist()))


@given(st.integers(0, 12), st.integers(0, 12))
def test_between(start: int, end: int) -> None:
    """Of offsets that retention or compaction left gaps in."""
    column = DataColumn(
        [2, 3, 7, 9], b"".join(length.to_bytes(4, "little") for length in (1, 0, 2, 1)), memoryview(b"abcd")
    )
    found = of_column(1, column).between(start, end)
    wanted = {2: b"a", 3: b"", 7: b"bc", 9: b"d"}
    assert dict(zip(found.offsets.to_pylist(), found.data.to_pylist(), strict=True)) == {
        offset: data for offset, data in wanted.items() if start <= offset < end
    }
