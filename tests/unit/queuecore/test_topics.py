"""Names of topics and groups."""

from uuid import UUID

import pytest

from queuecore.errors import ConfigurationError, InvalidName
from queuecore.topics import (
    MAX_BASE_LENGTH,
    SYSTEM_TENANT,
    ProviderPartition,
    ServiceType,
    TopicPartitionInfo,
    check_base_topic,
    check_no_clash,
    check_prefix,
    check_topic,
    dead_letter_partition,
    edge_notification_topic,
    group_name,
    notification_group,
    notification_topic,
    payload_partition,
    response_topic,
    task_topic,
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


def test_payloads_are_kept_beside_their_letters() -> None:
    assert payload_partition(ProviderPartition("tb_core.dlq", 3)).place == ProviderPartition("tb_core.dlq.payloads", 3)


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


@pytest.mark.parametrize(
    ("service_type", "queue", "partition", "name"),
    [
        (ServiceType.TB_RULE_ENGINE, "Main", 3, "re-Main-consumer-3"),
        (ServiceType.TB_RULE_ENGINE, "Main", None, "re-Main-consumer"),
        (ServiceType.TB_RULE_ENGINE, "HighPriority", 0, "re-HighPriority-consumer-0"),
        (ServiceType.TB_RULE_ENGINE, "CalculatedFields", 2, "cf-CalculatedFields-consumer-2"),
        (ServiceType.TB_CORE, "Main", 3, "tb-core-node"),
        (ServiceType.TB_CORE, "Edge", 3, "tb-core-edge-consumer"),
        (ServiceType.TASK_PROCESSOR, "IMPORT", 3, "import-task-consumer-group"),
        (ServiceType.EDQS, "Events", 3, "edqs_events-consumer-3"),
    ],
)
def test_group_names_as_thingsboard_has_them(
    service_type: ServiceType, queue: str, partition: int | None, name: str
) -> None:
    assert group_name(service_type, queue, None, partition, style="thingsboard") == name
    assert group_name(service_type, queue, None, partition, style="thingsboard", prefix="acme") == f"acme.{name}"


def test_the_group_of_an_isolated_tenant_as_thingsboard_has_it() -> None:
    name = group_name(ServiceType.TB_RULE_ENGINE, "Main", TENANT, 0, style="thingsboard")
    assert name == f"re-Main-isolated-{TENANT}-consumer-0"


def test_a_group_begins_with_the_prefix() -> None:
    assert group_name(ServiceType.TB_CORE, "Main", None, 3, prefix="acme") == "acme.tb_core_main-consumer-3"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (notification_topic("tb_core", "core-svc-1"), "tb_core.notifications.core-svc-1"),
        (notification_topic("tb_transport", "mqtt.example.org"), "tb_transport.notifications.mqtt.example.org"),
        (notification_topic("tb_core", "1", "acme"), "acme.tb_core.notifications.1"),
        (edge_notification_topic(TENANT), f"tb_core.edge.notifications.{TENANT}"),
        (edge_notification_topic("edge-7", prefix="acme"), "acme.tb_core.edge.notifications.edge-7"),
        (response_topic("js_eval", "core-svc-1"), "js_eval.responses.core-svc-1"),
        (response_topic("tb_transport.api", "mqtt-1", "acme"), "acme.tb_transport.api.responses.mqtt-1"),
        (task_topic("CF_REPROCESSING"), "tasks.cf_reprocessing"),
        (task_topic("Import", "acme"), "acme.tasks.import"),
    ],
)
def test_topics_of_one_service_edge_or_job_type(name: str, expected: str) -> None:
    assert name == expected


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (notification_group("tb_core", "core-svc-1"), "tb-core-notifications-node-core-svc-1"),
        (notification_group("tb_rule_engine", "re-1", "acme"), "acme.tb-rule-engine-notifications-node-re-1"),
        (notification_group("tb_transport", "t-1"), "tb-transport-notifications-node-t-1"),
        (notification_group("tb_transport", "t-1", style="thingsboard"), "transport-node-t-1"),
        (notification_group("tb_core", "c-1", style="thingsboard"), "tb-core-notifications-node-c-1"),
    ],
)
def test_each_instance_reads_its_notifications_in_a_group_of_its_own(group: str, expected: str) -> None:
    assert group == expected


@pytest.mark.parametrize("wrong", ["", "core 1", "core/1", "größe", ".core", "core.", "a..b", "a\n"])
def test_an_id_that_cannot_be_part_of_a_topic_is_refused(wrong: str) -> None:
    for name in (notification_topic, response_topic):
        with pytest.raises(InvalidName, match="cannot end the name of a topic tb_core"):
            name("tb_core", wrong)
    with pytest.raises(InvalidName, match=r"cannot end the name of a topic tb_core\.edge\.notifications"):
        edge_notification_topic(wrong)
    with pytest.raises(InvalidName, match="cannot end the name of a topic tasks"):
        task_topic(wrong)


def test_an_id_that_makes_a_topic_too_long_is_refused() -> None:
    with pytest.raises(InvalidName, match="272 characters; 249 is the most"):
        notification_topic("tb_core", "x" * 250)


@pytest.mark.parametrize("job_type", ["7", "dlq", "notifications"])
def test_a_job_type_that_would_look_like_one_of_our_endings_is_refused(job_type: str) -> None:
    with pytest.raises(InvalidName, match="appends itself"):
        task_topic(job_type)


@pytest.mark.parametrize("prefix", ["", "prod", "eu-1.prod", "A_b"])
def test_a_good_prefix_is_taken(prefix: str) -> None:
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", [".", "prod.", ".prod", "a..b", "a b", "ü", "x" * 61])
def test_a_prefix_that_no_name_could_begin_with_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidName, match="prefix"):
        check_prefix(prefix)


@pytest.mark.parametrize("names", [["a.b", "a_b"], ["x", "tb_core.0", "y", "tb.core.0"]])
def test_topics_that_kafka_takes_for_one_are_refused(names: list[str]) -> None:
    with pytest.raises(InvalidName, match=r"differ in '\.' and '_' alone"):
        check_no_clash(names)


def test_topics_that_differ_otherwise_do_not_clash() -> None:
    check_no_clash(["a.b", "a-b", "a.b", "A.b", "ab"])


@pytest.mark.parametrize("text", ["tb-rule-engine", "TB-RULE-ENGINE", "TB_RULE_ENGINE", "tb_Rule-engine"])
def test_a_service_type_has_several_spellings(text: str) -> None:
    assert ServiceType.of(text) is ServiceType.TB_RULE_ENGINE


@pytest.mark.parametrize("text", ["", "rule-engine", "TB RULE ENGINE"])
def test_an_unknown_service_type_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{text}'; choose one of TB_CORE, TB_RULE_ENGINE, TB_TRANSPORT"):
        ServiceType.of(text)


@pytest.mark.parametrize("name", ["tb_rule_engine", "tb_transport.api.requests", "a", "A-1", "v1.0x", "dlq", "7"])
def test_a_good_base_is_taken(name: str) -> None:
    assert check_base_topic(name) == name


@pytest.mark.parametrize("ending", [".0", ".17", ".dlq", ".payloads", ".notifications"])
def test_our_own_endings_are_refused(ending: str) -> None:
    with pytest.raises(InvalidName, match="appends itself"):
        check_base_topic(f"tb_core{ending}")
    assert check_topic(f"tb_core{ending}") == f"tb_core{ending}"


@pytest.mark.parametrize("inside", [f".isolated.{TENANT}", ".notifications.core-1", ".responses.core-1"])
def test_what_we_put_inside_names_is_refused_there(inside: str) -> None:
    with pytest.raises(InvalidName, match="puts there itself"):
        check_base_topic(f"tb_core{inside}")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "größe", "a\n", "a\0", "x" * (MAX_BASE_LENGTH + 1)])
def test_what_no_provider_could_hold_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_base_topic(name)


def test_the_longest_base_leaves_room_for_tenant_and_partition() -> None:
    info = TopicPartitionInfo(check_base_topic("x" * MAX_BASE_LENGTH), 99_999, TENANT)
    check_topic(info.full_topic_name)
    letters = dead_letter_partition(info)
    check_topic(letters.full_topic_name)
    check_topic(payload_partition(letters.place).full_topic_name)
    with pytest.raises(InvalidName, match="250 characters; 249 is the most"):
        check_topic("x" * 250)
