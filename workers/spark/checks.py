"""What the tables of summaries would refuse, found beforehand and column by column: there, one bad event would hold up
its whole batch, and every run after it."""

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from queuecore.topics import MAX_PARTITIONS, MAX_TOPIC_LENGTH
from workers.spark.ids import NOBODY, spelt_id
from workers.spark.numbers import numbers
from workers.spark.schemas import Kind
from workers.spark.wire import LONGEST_LIST

# What a report counts: sums of as many as a batch has, lists and all, still fit into a table's column.
LARGEST_COUNT: Final = 1 << 40
LARGEST_OFFSET: Final = 1 << 48
# Who counts a queue's partitions by their numbers makes room for so many.
_LARGEST_OF: Final = {
    "partition": MAX_PARTITIONS - 1,
    **dict.fromkeys(("beginning_offset", "end_offset", "committed_offset"), LARGEST_OFFSET),
}

# The columns with bounds, and those that are counted by these.
_HISTOGRAMS: Final = (
    ("lag_bounds_ms", "lag_buckets"),
    ("lag_bounds_ms", "age_buckets"),
    ("processing_bounds_ms", "processing_buckets"),
)

Problem = tuple[str, pa.Array]


def problems(kind: Kind, table: pa.Table) -> Iterator[Problem]:
    """Each with a mask that says which rows have it. A column without problems costs one look at its extremes, or at
    its different values."""
    for column in kind.arrow:
        values = table[column.name].combine_chunks()
        if pa.types.is_list(column.type):
            yield from _list_problems(column, values)
        else:
            yield from _problems(column.name, column.type, values)
    for bounds, buckets in _HISTOGRAMS:
        if bounds in table.column_names:
            yield from _histogram_problems(buckets, table[bounds], table[buckets])


def _problems(name: str, kind: pa.DataType, values: pa.Array) -> Iterator[Problem]:
    if pa.types.is_dictionary(kind):
        for reason, bad in _text_problems(name, values.dictionary):
            yield reason, bad.take(values.indices)
    elif pa.types.is_string(kind):
        yield from _text_problems(name, values)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        yield from _number_problems(name, values)


def _number_problems(name: str, values: pa.Array) -> Iterator[Problem]:
    if pa.types.is_floating(values.type):
        is_finite = pc.fill_null(pc.is_finite(values), fill_value=False)
        if not pc.all(is_finite).as_py() and len(values):
            yield f"{name} is no number", pc.invert(is_finite)
    extremes = pc.min_max(values)
    lowest, highest = extremes["min"].as_py(), extremes["max"].as_py()
    if lowest is not None and lowest < 0:
        yield f"{name} is negative", pc.fill_null(pc.less(values, 0), fill_value=False)
    largest = _LARGEST_OF.get(name, LARGEST_COUNT)
    if highest is not None and highest > largest:
        yield f"{name} is above {largest}", pc.fill_null(pc.greater(values, largest), fill_value=False)


def _text_problems(name: str, values: pa.Array) -> Iterator[Problem]:
    why = _TEXTS[name]
    if bad := [text for text in pc.unique(values).to_pylist() if text is not None and not why[1](text)]:
        yield f"{name} {why[0]}", pc.is_in(values, value_set=pa.array(bad, pa.string()))


def _list_problems(column: pa.Field, lists: pa.Array) -> Iterator[Problem]:
    """A row is bad where its list is too long, or an element of it is bad."""
    is_long = pc.fill_null(pc.greater(pc.list_value_length(lists), LONGEST_LIST), fill_value=False)
    if pc.any(is_long).as_py():
        yield too_long(column.name), is_long
    elements = lists.flatten()
    parents = pc.list_parent_indices(lists)
    for reason, bad in _element_problems(column, elements):
        rows = pc.unique(parents.filter(bad))
        yield reason, pc.is_in(numbers(len(lists)), value_set=rows.cast(pa.int64()))


def too_long(name: str) -> str:
    return f"{name} has more than {LONGEST_LIST} elements"


def _element_problems(column: pa.Field, elements: pa.Array) -> Iterator[Problem]:
    kind = column.type.value_type
    if not pa.types.is_struct(kind):
        yield from _problems(column.name, kind, elements)
        return
    for index, member in enumerate(kind):
        yield from _problems(member.name, member.type, elements.field(index))


def _histogram_problems(name: str, bounds: pa.ChunkedArray, buckets: pa.ChunkedArray) -> Iterator[Problem]:
    counts = pc.list_value_length(buckets.combine_chunks())
    wanted = pc.add(pc.list_value_length(bounds.combine_chunks()), 1)
    bad = pc.and_(pc.not_equal(counts, 0), pc.not_equal(counts, wanted))
    if pc.any(bad).as_py():
        yield f"{name} has not one count more than there are bounds", bad


def _is_id(text: str) -> bool:
    return spelt_id(text) == text


def _is_tenant(text: str) -> bool:
    return text in NOBODY or _is_id(text)


def _is_name(longest: int) -> Callable[[str], bool]:
    # PostgreSQL takes no text with a zero in it.
    return lambda text: len(text) <= longest and "\0" not in text


_TEXTS: Final[dict[str, tuple[str, Callable[[str], bool]]]] = {
    "queue_id": ("is not an id", _is_id),
    "tenant_id": ("is not an id", _is_tenant),
    **{
        name: (f"has more than {longest} characters, or a zero among them", _is_name(longest))
        for name, longest in (
            ("service_id", 100),
            ("topic", MAX_TOPIC_LENGTH),
            ("group", MAX_TOPIC_LENGTH),
            ("request_topic", MAX_TOPIC_LENGTH),
            ("fingerprint", 16),
        )
    },
}
