"""YAML of configuration documents: what was written is read as it was, and nothing that is read does harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueapi.configuration.yaml_lines import Lines
from queueapi.configuration.yaml_reading import MAX_VALUES, UnreadableYaml, read_yaml
from queueapi.configuration.yaml_writing import write_yaml

DEPTH = 64
# What a database may hold: neither NUL nor half of a surrogate pair.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
LINES = st.lists(st.sampled_from(["", " x", "x ", "\tx", "- x", "# x", "message Order {", "}", "\r", "x: y"])).map(
    "\n".join
)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
AMBIGUOUS = st.sampled_from(
    ["no", "Null", "~", "1e3", "0o17", "0x1F", "1_000", "12:30", "2030-01-31", "<<", "=", ".inf", "-"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | LINES | AMBIGUOUS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | AMBIGUOUS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS | AMBIGUOUS, VALUES, max_size=4))
def test_what_was_written_is_read_as_it_was(values) -> None:
    text = write_yaml(values)
    read = read_yaml(text, DEPTH)
    assert read == values
    assert repr(read) == repr(values)
    assert write_yaml(read) == text


def test_sources_keep_their_lines_and_equal_values_are_written_out() -> None:
    shared = {"a": [1]}
    body = write_yaml({"file": "one\ntwo\n", "first": shared, "second": shared}).split("\n\n", 1)[1]
    assert body == "file: |\n  one\n  two\nfirst:\n  a:\n  - 1\nsecond:\n  a:\n  - 1\n"


def test_a_document_begins_with_what_it_is() -> None:
    first, *_ = write_yaml({"format": 1}).splitlines()
    assert first == "# The configuration of a Switchyard installation, format 1."


def test_an_alias_stands_for_what_it_names() -> None:
    assert read_yaml("a: &x {b: [1, 2]}\nc: *x\n", DEPTH) == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("format: 1\nqueues: ]", 2, "this is not YAML"),
        ("format: 1\n  queues:\n- a", 2, "this is not YAML"),
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' is here a second time"),
        ("a: 1\n7: 2", 2, "a key must be a text; write 7 in quotes"),
        ("a: 1\n{b: c}: 2", 2, "a key must be a single text"),
        ("a: 1\n---\nb: 2", 2, "a second document begins here"),
        ("a:\n  - *b", 2, "*b refers to nothing that has ended before it"),
        ("a: &a\n  - *a", 2, "*a refers to nothing that has ended before it"),
        ("a: !!python/object/apply:os.system [date]", 1, "the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        ("a: !secret x", 1, "the tag '!secret' is not read here"),
        ("a: !!binary aGk=", 1, "the tag"),
        ("a: !!int many", 1, "'many' is no int"),
        ("a: .nan", 1, "'.nan' is no float that can be used"),
        (f"a: {'9' * 5000}", 1, "is no int that can be used"),
        ("a: \x01", 1, "this is not YAML"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text, line, why) -> None:
    with pytest.raises(UnreadableYaml) as refused:
        read_yaml(text, DEPTH)
    assert why in refused.value.message
    assert refused.value.message.startswith(f"line {line}: ")


@pytest.mark.parametrize(
    "nested", ["[" * 200_000, "- " * 50_000, "{a: " * 50_000, "[" * (DEPTH + 1) + "]" * (DEPTH + 1)]
)
def test_what_is_nested_too_deeply_is_refused_however_deep(nested) -> None:
    with pytest.raises(UnreadableYaml, match="64 levels are the most"):
        read_yaml(nested, DEPTH)


def test_the_deepest_that_is_allowed_is_read() -> None:
    assert read_yaml("[" * DEPTH + "]" * DEPTH, DEPTH) is not None


def test_aliases_of_aliases_are_counted_as_if_they_were_written_out() -> None:
    levels = [
        f"{name}: &{name} [{', '.join(['*' + before] * 10)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    with pytest.raises(UnreadableYaml, match=f"more than {MAX_VALUES:,} values"):
        read_yaml("\n".join(["a: &a [x, x, x, x, x, x, x, x, x, x]", *levels]), DEPTH)


def test_nothing_is_nothing() -> None:
    assert read_yaml("# only a comment\n", DEPTH) is None


def test_a_place_has_the_line_where_it_is_written() -> None:
    lines = Lines(
        "# what it is\n"
        "format: 1\n"
        "queues:\n"
        "- &first\n"
        "  tenant: System\n"
        "  handler_options:\n"
        "    url: https://example.org\n"
        "- {tenant: System,\n"
        "   name: a.b}\n"
        "- *first\n"
        "tenants: [{name: Quay}]\n"
    )
    places = ["format", "queues", "queues[0].tenant", "queues[0].handler_options", "queues[1].name", "queues[2].tenant"]
    assert [lines.of(place) for place in places] == [2, 3, 5, 6, 9, 10]
    # What was left out is where it would be.
    assert [lines.of(place) for place in ("queues[1].topic", "tenants[0].a.b", "tenants", "document")] == [
        8,
        11,
        11,
        None,
    ]


@given(st.dictionaries(TEXTS | AMBIGUOUS, VALUES, max_size=4))
def test_whatever_can_be_read_has_lines(values) -> None:
    text = write_yaml(values)
    last = len(text.splitlines())
    assert all(0 < (Lines(text).of(key) or 1) <= last for key in values)


def test_a_key_that_is_an_alias_hides_no_other_line() -> None:
    text = "a: &x b\nc: {*x : 1,\n d: 2}\n"
    assert read_yaml(text, DEPTH) == {"a": "b", "c": {"b": 1, "d": 2}}
    assert [Lines(text).of(place) for place in ("c.b", "c.d")] == [2, 3]
