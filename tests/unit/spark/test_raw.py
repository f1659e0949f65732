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
from workers.spark.raw import columns_of, cut, raw_events

PLACE = ProviderPartition(METRICS_TOPIC, 0)
# Of offsets that retention or compaction left gaps in.
GAPPY = DataColumn([2, 3, 7, 9], b"".join(size.to_bytes(4, "little") for size in (1, 0, 2, 1)), memoryview(b"abcd"))
GAPPY_DATA = {2: b"a", 3: b"", 7: b"bc", 9: b"d"}

_data = st.binary(min_size=1, max_size=300)
_batches = st.lists(st.lists(_data, min_size=1, max_size=20) | st.just([b"alike"] * 9), min_size=1, max_size=3)


@given(_batches, st.integers(1, 1_000))
def test_columns_hold_what_records_hold(batches: list[list[bytes]], most_bytes: int) -> None:
    with TemporaryDirectory() as folder, closing(LogProvider(Path(folder))) as provider:
        provider.admin().create_topics([TopicSpec(METRICS_TOPIC, 1)])
        with closing(PartitionWriter(Path(folder), PLACE)) as writer:
            for batch in batches:
                writer.append(encode_body([QueueMessage(None, data) for data in batch]), 0, sync=False)
        with closing(provider.reader()) as reader:
            of_records = list(columns_of(reader.read(PLACE, 0, 1_000), most_bytes))
            columns: list[DataColumn] = []
            while column := reader.read_data(PLACE, sum(len(one.offsets) for one in columns)):
                columns.append(column)
    assert all(len(one.data) <= most_bytes or len(one.offsets) == 1 for one in of_records)
    found = raw_events(0, columns)
    assert found == raw_events(0, of_records)
    assert found.data.to_pylist() == [data for batch in batches for data in batch]


@given(st.integers(0, 12), st.integers(0, 12))
def test_what_is_between_two_offsets(start: int, end: int) -> None:
    wanted = {offset: data for offset, data in GAPPY_DATA.items() if start <= offset < end}
    columns = [one] if (one := cut(GAPPY, start, end)).offsets else []
    for found in (raw_events(1, [GAPPY]).between(start, end), *(raw_events(1, [one]) for one in columns)):
        assert dict(zip(found.offsets.to_pylist(), found.data.to_pylist(), strict=True)) == wanted
    assert bool(columns) == bool(wanted)


def test_columns_with_gaps_between_them_keep_their_offsets() -> None:
    later = DataColumn(range(20, 22), (1).to_bytes(4, "little") * 2, memoryview(b"xy"))
    found = raw_events(1, [GAPPY, later])
    told = dict(zip(found.offsets.to_pylist(), found.data.to_pylist(), strict=True))
    assert told == GAPPY_DATA | {20: b"x", 21: b"y"}


def test_no_records_are_no_column() -> None:
    assert list(columns_of([], 100)) == []
