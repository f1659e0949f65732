"""Messages read in step are what protobuf says they are; whatever else there is, is found out."""

from itertools import compress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.proto.events_pb2 import Event, OffsetSample, SentSample
from workers.spark.wire import Buffer, InStep, Irregular

_numbers = st.sampled_from([0, 1, 127, 128, 16_383, 16_384, -1]) | st.integers(-(1 << 63), (1 << 63) - 1)
_texts = st.sampled_from(["", "t.0", "\N{GREEK SMALL LETTER LAMDA}"]) | st.text(max_size=300)
_samples = st.builds(
    OffsetSample,
    queue_id=_texts,
    partition=st.integers(0, (1 << 31) - 1),
    topic=_texts,
    group=_texts,
    beginning_offset=_numbers,
    end_offset=_numbers,
    committed_offset=st.none() | _numbers,
)

Standing = tuple[str, int, str, str, int, int, int | None]


def read(messages: list[bytes]) -> list[Standing]:
    """All fields of samples of offsets."""
    buffer = Buffer(pa.array(messages, pa.binary()))
    steps = InStep(buffer, buffer.messages)
    queue_id, partition = steps.span(1), steps.number(2)
    texts = [queue_id, steps.span(3), steps.span(4)]
    numbers = [partition, steps.number(5), steps.number(6), steps.number_or_null(7)]
    steps.check_end()
    queues, topics, groups = ([one.decode() for one in column.to_pylist()] for column in buffer.cut(*texts))
    partitions, beginnings, ends, commits = (column.to_pylist() for column in numbers)
    return list(zip(queues, partitions, topics, groups, beginnings, ends, commits, strict=True))


def told(sample: OffsetSample) -> Standing:
    committed = sample.committed_offset if sample.HasField("committed_offset") else None
    names = (sample.queue_id, sample.partition, sample.topic, sample.group)
    return (*names, sample.beginning_offset, sample.end_offset, committed)


@given(st.lists(_samples))
def test_each_has_its_own_values(samples: list[OffsetSample]) -> None:
    assert read([one.SerializeToString() for one in samples]) == [told(one) for one in samples]


@given(st.lists(_samples, min_size=1, max_size=5), st.data())
def test_bytes_that_are_changed_are_read_as_protobuf_reads_them_or_refused(
    samples: list[OffsetSample], data: st.DataObject
) -> None:
    """Never as something else: what is refused is parsed by protobuf, message by message if need be."""
    messages = [bytearray(one.SerializeToString()) for one in samples]
    changed = data.draw(st.sampled_from(messages))
    if changed:
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read([bytes(one) for one in messages])
    except (Irregular, UnicodeDecodeError):
        return
    expected = [told(OffsetSample.FromString(bytes(one))) for one in messages]
    # Of a number that is too large for its type protobuf takes the lower bits; who makes a column of it refuses it.
    fitting = [-(1 << 31) <= one[1] < 1 << 31 for one in found]
    assert list(compress(found, fitting)) == list(compress(expected, fitting))


@pytest.mark.parametrize(
    "message",
    [
        OffsetSample(end_offset=300).SerializeToString()[:-1],
        OffsetSample(queue_id="queue").SerializeToString()[:-1],
        OffsetSample(end_offset=1).SerializeToString() * 2,
        OffsetSample(end_offset=1).SerializeToString() + OffsetSample(partition=1).SerializeToString(),
        OffsetSample(end_offset=1).SerializeToString() + b"\xa2\x06\x01x",
    ],
    ids=["a number cut short", "a text cut short", "twice", "in another order", "a later version's field"],
)
def test_irregular(message: bytes) -> None:
    """Wherever it stands: the bytes of the next one must not be taken for its own."""
    whole = OffsetSample(queue_id="q", end_offset=5).SerializeToString()
    for messages in ([message], [message, whole], [whole, message]):
        with pytest.raises(Irregular):
            read(messages)


def test_one_of_several_bodies() -> None:
    events = [
        Event(at_ms=1, offset_sample=OffsetSample(end_offset=3)),
        Event(at_ms=2),
        Event(at_ms=3, sent_sample=SentSample(topic="t")),
    ]
    buffer = Buffer(pa.array([one.SerializeToString() for one in events], pa.binary()))
    steps = InStep(buffer, buffer.messages)
    assert steps.number(Event.AT_MS_FIELD_NUMBER).to_pylist() == [1, 2, 3]
    fields, spans = steps.one_of((Event.OFFSET_SAMPLE_FIELD_NUMBER, Event.SENT_SAMPLE_FIELD_NUMBER))
    steps.check_end()
    assert fields.to_pylist() == [Event.OFFSET_SAMPLE_FIELD_NUMBER, 0, Event.SENT_SAMPLE_FIELD_NUMBER]
    bodies = [events[0].offset_sample.SerializeToString(), b"", events[2].sent_sample.SerializeToString()]
    assert buffer.cut(spans)[0].to_pylist() == bodies


def test_nothing() -> None:
    assert read([]) == []
