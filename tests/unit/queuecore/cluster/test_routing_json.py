"""Routing tables as text: nothing is lost, and what routes alike is equal."""

import json
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.cluster.routing_json import from_json, to_json
from queuecore.errors import ConfigurationError
from queuecore.routing import QueueKey, RoutedQueue, RoutingTable
from queuecore.topics import SYSTEM_TENANT, ServiceType

RE = ServiceType.TB_RULE_ENGINE
TENANT = UUID("784f394c-42b6-435a-983c-b7beff2784f9")
TABLE = RoutingTable(
    3,
    {
        QueueKey(RE): RoutedQueue("tb_rule_engine", 10, duplicate_to_all_partitions=True),
        QueueKey(RE, "Main", TENANT): RoutedQueue("tb_rule_engine", 2),
        QueueKey(ServiceType.EDQS, "Events"): RoutedQueue("edqs.events", 12, use_internal_partition=True),
    },
    isolated=frozenset({TENANT}),
)


@st.composite
def tables(draw: st.DrawFn) -> RoutingTable:
    tenants = draw(st.lists(st.uuids(), max_size=4, unique=True))
    numbers = draw(st.lists(st.integers(0, 50), max_size=12, unique=True))
    queues = {}
    for number in numbers:
        tenant = draw(st.sampled_from([SYSTEM_TENANT, *tenants]))
        kind = draw(st.sampled_from(list(ServiceType))) if tenant == SYSTEM_TENANT else RE
        partitions, flags = draw(st.integers(1, 5)), draw(st.tuples(st.booleans(), st.booleans()))
        first = draw(st.sampled_from([0, 0, 4, 700]))
        queues[QueueKey(kind, f"Queue-{number}", tenant)] = RoutedQueue(f"topic-{number}", partitions, *flags, first)
    known = draw(st.sampled_from([None, frozenset(tenants)]))
    hash_name = draw(st.sampled_from(["murmur3_128", "sha256", "fnv1a"]))
    return RoutingTable(draw(st.integers(0, 9)), queues, frozenset(tenants[:2]), known, hash_name)


@given(tables())
def test_a_table_is_read_as_it_was_written(table: RoutingTable) -> None:
    assert from_json(to_json(table), table.version) == table


@given(tables())
def test_tables_that_route_alike_are_equal_texts(table: RoutingTable) -> None:
    reversed_queues = dict(reversed(table.queues.items()))
    assert to_json(replace(table, version=table.version + 1, queues=reversed_queues)) == to_json(table)


@given(tables(), tables())
def test_tables_that_do_not_are_not(one: RoutingTable, other: RoutingTable) -> None:
    assert (to_json(one) == to_json(other)) == (replace(one, version=0) == replace(other, version=0))


def test_only_a_table_that_says_more_is_not_for_older_programs() -> None:
    resized = RoutingTable(3, {QueueKey(RE): RoutedQueue("tb_rule_engine", 2, first_partition=10)})
    assert [json.loads(to_json(table))["format"] for table in (TABLE, resized)] == [1, 2]


def test_what_a_newer_program_wrote_is_refused() -> None:
    newer = json.loads(to_json(TABLE)) | {"format": 3}
    with pytest.raises(
        ConfigurationError, match="version 7 is written in format 3, this program reads up to 2; update"
    ):
        from_json(json.dumps(newer), 7)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":1}', to_json(TABLE).replace("EDQS", "LATER")])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="routing version 7 cannot be read"):
        from_json(text, 7)
