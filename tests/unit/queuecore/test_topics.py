"""Names of topics and groups."""

from uuid import UUID

import pytest

from queuecore.errors import InvalidName
from queuecore.topics import (
    MAX_BASE_LENGTH,
    SYSTEM_TENANT,
    ProviderPartition,
    ServiceType,
    TopicPartitionInfo,
    check_base_topic,
    check_topic,
    dead_letter_partition,
    group_name,
    with_prefix,
)

TENANT = UUID("784f394c-42b6-435a-983c-b7beff2784f9")


@pytest.mark.parametrize(
    ("info", "name", "inner"),
    [
        (TopicPartitionInfo("tb_core"), "tb_core", 0),
        (TopicPartitionInfo("tb_core", 3), "tb_core.3", 0),
        (TopicPartitionInfo("tb_core", 3, SYSTEM_TENANT), "tb_core.3", 0),
        (TopicPartitionInfo("tb_core", 0, TENANT), f"tb_core.isolated.{TENANT}.0", 0),
        (TopicPartitionInfo("tb_core", None, TENANT), f"tb_core.isolated.{TENANT}", 0),
        (TopicPartitionInfo("tb_core", 3, use_internal_partition=True), "tb_core", 3),
        (TopicPartitionInfo("tb_core", 3, TENANT, use_internal_partition=True), f"tb_core.isolated.{TENANT}", 3),
        (TopicPartitionInfo(with_prefix("acme", "tb_core"), 3), "acme.tb_core.3", 0),
        (TopicPartitionInfo(with_prefix("", "tb_core"), 3), "tb_core.3", 0),
    ],
    ids=str,
)
def test_where_a_partition_is_at_the_provider(info: TopicPartitionInfo, name: str, inner: int) -> None:
    assert info.full_topic_name == name
    assert info.place == ProviderPartition(name, inner)


def test_partitions_are_equal_when_they_name_the_same_place() -> None:
    here = TopicPartitionInfo("tb_core", 3)
    same = TopicPartitionInfo("tb_core", 3, SYSTEM_TENANT, my_partition=False)
    assert here == same
    assert len({here, same}) == 1
    others = [
        TopicPartitionInfo("tb_core", 4),
        TopicPartitionInfo("tb_core", 3, TENANT),
        TopicPartitionInfo("tb_core", 3, use_internal_partition=True),
        TopicPartitionInfo("tb_core.3"),
        "tb_core.3",
    ]
    assert here not in others


def test_letters_keep_the_partitions_of_their_queue() -> None:
    letters = dead_letter_partition(TopicPartitionInfo("tb_core", 3, TENANT))
    assert letters.place == ProviderPartition(f"tb_core.isolated.{TENANT}.dlq", 3)
    shared = dead_letter_partition(TopicPartitionInfo("acme.tb_core", 0))
    assert shared.place == ProviderPartition("acme.tb_core.dlq", 0)


@pytest.mark.parametrize(
    ("tenant", "partition", "name"),
    [
        (None, None, "tb_rule_engine_main-consumer"),
        (SYSTEM_TENANT, 3, "tb_rule_engine_main-consumer-3"),
        (TENANT, None, f"tb_rule_engine_main-isolated-{TENANT}-consumer"),
        (TENANT, 0, f"tb_rule_engine_main-isolated-{TENANT}-consumer-0"),
    ],
)
def test_group_names(tenant: UUID | None, partition: int | None, name: str) -> None:
    assert group_name(ServiceType.TB_RULE_ENGINE, "Main", tenant, partition) == name


@pytest.mark.parametrize("name", ["tb_rule_engine", "tb_transport.api.requests", "a", "A-1", "v1.0x", "dlq", "7"])
def test_a_good_base_is_taken(name: str) -> None:
    assert check_base_topic(name) == name


@pytest.mark.parametrize("ending", [".0", ".17", ".dlq", ".notifications"])
def test_our_own_endings_are_refused(ending: str) -> None:
    with pytest.raises(InvalidName, match="appends itself"):
        check_base_topic(f"tb_core{ending}")
    assert check_topic(f"tb_core{ending}") == f"tb_core{ending}"


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "größe", "a\n", "a\0", "x" * (MAX_BASE_LENGTH + 1)])
def test_what_no_provider_could_hold_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_base_topic(name)


def test_the_longest_base_leaves_room_for_tenant_and_partition() -> None:
    info = TopicPartitionInfo(check_base_topic("x" * MAX_BASE_LENGTH), 99_999, TENANT)
    check_topic(info.full_topic_name)
    check_topic(dead_letter_partition(info).full_topic_name)
    with pytest.raises(InvalidName, match="250 characters; 249 is the most"):
        check_topic("x" * 250)
