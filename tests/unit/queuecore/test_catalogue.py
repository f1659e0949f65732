"""Every topic of the platform, with its partitions and how long it keeps what it holds."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from queuecore.catalogue import (
    CatalogueEntry,
    Scope,
    catalogue,
    edge_specs,
    routed_queues,
    service_specs,
    specs,
    with_calculated_fields,
)
from queuecore.config.queue_options import queue_settings
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import InvalidName
from queuecore.providers.base import DAY_MS, FOR_EVER, TopicSpec
from queuecore.routing import QueueKey, RoutedQueue, Router, RoutingTable
from queuecore.topics import CALCULATED_FIELD_STATES, CALCULATED_FIELDS, ServiceType

SEED = Path(__file__).parents[4] / "shared" / "seeds" / "000_b2cd67f5a47816fe.txt"
TENANT = UUID("784f394c-42b6-435a-983c-b7beff2784f9")
RE = ServiceType.TB_RULE_ENGINE
DEFAULTS = QueueSettings()

MB = 1024 * 1024
WEEK = (7 * DAY_MS, 1_048_576_000)
# topic, partitions, (retention in ms, in bytes), cleanup; by how many topics it stands for
ALONE: list[tuple[str, int, tuple[int, int], str]] = [
    ("tb_core", 10, WEEK, "delete"),
    ("tb_rule_engine", 10, WEEK, "delete"),
    ("tb_transport.api.requests", 10, WEEK, "delete"),
    ("tb_edge", 10, WEEK, "delete"),
    ("tb_usage_stats", 1, WEEK, "delete"),
    ("tb_ota_package", 10, WEEK, "delete"),
    ("tb_housekeeper", 10, WEEK, "delete"),
    ("tb_housekeeper.reprocessing", 1, (90 * DAY_MS, 1_048_576_000), "delete"),
    ("tb_version_control", 10, WEEK, "delete"),
    ("tb_cf_event", 10, WEEK, "delete"),
    ("tb_cf_state", 10, (FOR_EVER, 104_857_600_000), "compact"),
    ("js_eval.requests", 30, (DAY_MS, 104_857_600), "delete"),
    ("edqs.events", 12, (DAY_MS, FOR_EVER), "delete"),
    ("edqs.state", 12, (FOR_EVER, FOR_EVER), "compact"),
    ("edqs.requests", 12, (180_000, 1_048_576_000), "delete"),
    ("jobs.stats", 1, (7 * DAY_MS, 104_857_600), "delete"),
]
PER_SERVICE: list[tuple[str, int, tuple[int, int], str]] = [
    ("tb_core.notifications", 1, WEEK, "delete"),
    ("tb_rule_engine.notifications", 1, WEEK, "delete"),
    ("tb_transport.notifications", 1, WEEK, "delete"),
    ("tb_transport.api.responses", 1, WEEK, "delete"),
    ("tb_edge.notifications", 1, WEEK, "delete"),
    ("js_eval.responses", 1, (DAY_MS, 104_857_600), "delete"),
    ("edqs.responses", 1, (180_000, 1_048_576_000), "delete"),
]
PER_EDGE = [("tb_core.edge.notifications", 1, (30 * DAY_MS, 1_048_576_000), "delete")]
PER_JOB_TYPE = [("tasks", 12, (7 * DAY_MS, 104_857_600), "delete")]


def row(entry: CatalogueEntry) -> tuple[Any, ...]:
    kept = entry.retention
    return entry.topic, entry.partitions, (kept.retention_ms, kept.retention_bytes), kept.cleanup


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope.ALONE, ALONE),
        (Scope.PER_SERVICE, PER_SERVICE),
        (Scope.PER_EDGE, PER_EDGE),
        (Scope.PER_JOB_TYPE, PER_JOB_TYPE),
    ],
)
def test_the_catalogue_of_a_new_installation(scope: Scope, expected: list[Any]) -> None:
    assert [row(entry) for entry in catalogue(DEFAULTS) if entry.scope is scope] == expected


@pytest.mark.skipif(not SEED.is_file(), reason="the seed documents are not beside this checkout")
def test_every_topic_of_the_seed_is_there_with_its_purpose() -> None:
    text = SEED.read_text()
    tables = text[text.index("### Primary Topics") : text.index("### Notification Topics")]
    listed = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", tables, re.MULTILINE))
    assert len(listed) == 24

    known = {entry.topic: entry.purpose for entry in catalogue(DEFAULTS)}
    for topic, purpose in listed.items():
        if topic == "{job-type}":
            assert "tasks" in known
        else:
            assert known[topic.removesuffix(".{serviceId}")] == purpose.strip()


def test_all_segments_have_the_same_size() -> None:
    assert {entry.retention.segment_bytes for entry in catalogue(DEFAULTS)} == {52_428_800}


@pytest.mark.parametrize("entry", catalogue(DEFAULTS), ids=lambda entry: entry.topic)
def test_every_entry_says_what_for_and_who_reads_it(entry: CatalogueEntry) -> None:
    assert entry.purpose
    assert entry.read_by
    assert (entry.queue is not None) == (entry.scope is Scope.ALONE)


def by_name(settings: QueueSettings, *job_types: str) -> dict[str, TopicSpec]:
    made = specs(settings, job_types)
    assert len({spec.name for spec in made}) == len(made)
    return {spec.name: spec for spec in made}


def test_partitions_are_topics_of_their_own_where_they_are_assigned_to_services() -> None:
    made = by_name(DEFAULTS)
    assert {f"tb_core.{number}" for number in range(10)} <= made.keys()
    assert "tb_core" not in made
    assert made["tb_core.0"] == TopicSpec("tb_core.0", 1, *WEEK, segment_bytes=50 * MB)
    assert made["edqs.state.11"].is_compacted


@pytest.mark.parametrize(
    ("topic", "partitions"),
    [("tb_transport.api.requests", 10), ("tb_ota_package", 10), ("tb_housekeeper", 10), ("js_eval.requests", 30)],
)
def test_what_services_share_as_a_group_is_one_topic(topic: str, partitions: int) -> None:
    made = by_name(DEFAULTS)
    assert made[topic].partitions == partitions
    assert f"{topic}.0" not in made


def test_all_partitions_can_be_inside_their_topics() -> None:
    made = by_name(queue_settings({"SWITCHYARD_QUEUE_PARTITIONS_USE_INTERNAL_PARTITION": "true"}))
    assert [(name, made[name].partitions) for name in made] == [(name, count) for name, count, *_ in ALONE]


def test_settings_name_topics_and_count_partitions() -> None:
    settings = queue_settings(
        {
            "SWITCHYARD_QUEUE_PREFIX": "acme",
            "SWITCHYARD_QUEUE_CORE_TOPIC": "core",
            "SWITCHYARD_QUEUE_CORE_PARTITIONS": "2",
            "SWITCHYARD_QUEUE_CORE_HOUSEKEEPER_TOPIC": "broom",
            "SWITCHYARD_QUEUE_RULE_ENGINE_PARTITIONS": "3",
        }
    )
    made = by_name(settings)
    assert [name for name in made if name.startswith("acme.core.")] == ["acme.core.0", "acme.core.1"]
    assert {"acme.broom", "acme.broom.reprocessing", "acme.tb_cf_state.2"} <= made.keys()
    assert "acme.tb_cf_event.3" not in made
    assert all(name.startswith("acme.") for name in made)
    assert service_specs(settings, ServiceType.TB_CORE, "c-1")[0].name == "acme.core.notifications.c-1"


@pytest.mark.parametrize(("provider", "replicas"), [("kafka", 3), ("log", None)])
def test_main_may_have_more_replicas_than_the_others(provider: str, replicas: int | None) -> None:
    environ = {"SWITCHYARD_QUEUE_TYPE": provider, "SWITCHYARD_QUEUE_KAFKA_REPLICATION_FACTOR": "2"}
    assert {spec.replication_factor for spec in by_name(queue_settings(environ)).values()} == {None}
    more = by_name(queue_settings(environ | {"SWITCHYARD_QUEUE_RULE_ENGINE_REPLICATION_FACTOR": "3"}))
    assert more["tb_rule_engine.0"].replication_factor == replicas
    assert more["tb_core.0"].replication_factor is None


def test_every_job_type_has_its_topic() -> None:
    settings = queue_settings({"SWITCHYARD_QUEUE_TASKS_PARTITIONS_PER_TYPE": "IMPORT:24;EXPORT:6"})
    made = [name for name in by_name(settings, "Report", "import") if name.startswith("tasks.")]
    assert made == [
        *(f"tasks.report.{number}" for number in range(12)),
        *(f"tasks.import.{number}" for number in range(24)),
        *(f"tasks.export.{number}" for number in range(6)),
    ]
    with pytest.raises(InvalidName, match="cannot end the name of a topic tasks"):
        specs(DEFAULTS, ["no good"])


@pytest.mark.parametrize(
    ("service_type", "names"),
    [
        (
            ServiceType.TB_CORE,
            ["tb_core.notifications.x-1", "tb_edge.notifications.x-1", "js_eval.responses.x-1", "edqs.responses.x-1"],
        ),
        (ServiceType.TB_RULE_ENGINE, ["tb_rule_engine.notifications.x-1", "js_eval.responses.x-1"]),
        (ServiceType.TB_TRANSPORT, ["tb_transport.notifications.x-1", "tb_transport.api.responses.x-1"]),
        (ServiceType.JS_EXECUTOR, []),
    ],
)
def test_the_topics_of_one_service_instance(service_type: ServiceType, names: list[str]) -> None:
    made = service_specs(DEFAULTS, service_type, "x-1")
    assert [(spec.name, spec.partitions) for spec in made] == [(name, 1) for name in names]


def test_an_instance_whose_id_makes_no_topic_is_refused() -> None:
    with pytest.raises(InvalidName, match=r"'core 1' cannot end the name of a topic tb_core\.notifications"):
        service_specs(DEFAULTS, ServiceType.TB_CORE, "core 1")


def test_the_topic_of_one_edge() -> None:
    (spec,) = edge_specs(DEFAULTS, TENANT)
    assert (spec.name, spec.retention_ms) == (f"tb_core.edge.notifications.{TENANT}", 30 * DAY_MS)


def test_a_topic_for_two_purposes_is_refused() -> None:
    with pytest.raises(InvalidName, match="'tb_core' is for 'Core platform messages' and for 'Edge device"):
        catalogue(replace(DEFAULTS, edge=replace(DEFAULTS.edge, topic="tb_core")))


def test_topics_that_clash_on_kafka_are_refused() -> None:
    with pytest.raises(InvalidName, match=r"'tb_core' and 'tb\.core' differ"):
        catalogue(replace(DEFAULTS, edge=replace(DEFAULTS.edge, topic="tb.core")))


def test_a_prefix_that_makes_a_topic_too_long_is_refused() -> None:
    with pytest.raises(InvalidName, match="180 is the most"):
        catalogue(replace(DEFAULTS, prefix="p" * 60, core=replace(DEFAULTS.core, topic="x" * 150)))


@pytest.mark.parametrize("internal", [False, True])
def test_everything_that_is_routed_has_been_created(internal: bool) -> None:
    partitions = replace(DEFAULTS.partitions, use_internal_partition=internal)
    settings = replace(DEFAULTS, prefix="acme", partitions=partitions)
    created = {spec.name: spec.partitions for spec in specs(settings, ["IMPORT"])}
    queues = routed_queues(settings, ["IMPORT"])
    router = Router(RoutingTable(1, queues))

    places = {info.place for key in queues for info in router.get_partitions(key.service_type, key.queue, key.tenant)}

    assert places == {(name, number) for name, count in created.items() for number in range(count)}


def test_the_queues_of_a_new_installation() -> None:
    queues = routed_queues(DEFAULTS, ["IMPORT"])
    assert queues[QueueKey(RE)] == RoutedQueue("tb_rule_engine", 10)
    assert queues[QueueKey(ServiceType.TB_CORE)] == RoutedQueue("tb_core", 10)
    assert queues[QueueKey(ServiceType.TB_CORE, "Edge")] == RoutedQueue("tb_edge", 10)
    assert queues[QueueKey(ServiceType.TB_VC_EXECUTOR)] == RoutedQueue("tb_version_control", 10)
    assert queues[QueueKey(ServiceType.TASK_PROCESSOR, "IMPORT")] == RoutedQueue("tasks.import", 12)
    assert queues[QueueKey(ServiceType.JS_EXECUTOR)].use_internal_partition


def test_calculated_fields_have_as_many_partitions_as_their_main() -> None:
    queues = with_calculated_fields(
        replace(DEFAULTS, prefix="acme"),
        {
            QueueKey(RE): RoutedQueue("acme.tb_rule_engine", 7),
            QueueKey(RE, "HighPriority"): RoutedQueue("acme.tb_rule_engine.hp", 4),
            QueueKey(RE, "Main", TENANT): RoutedQueue("acme.tb_rule_engine", 2),
        },
    )
    made = {key: queue for key, queue in queues.items() if key.queue in {CALCULATED_FIELDS, CALCULATED_FIELD_STATES}}
    assert made == {
        QueueKey(RE, CALCULATED_FIELDS): RoutedQueue("acme.tb_cf_event", 7),
        QueueKey(RE, CALCULATED_FIELD_STATES): RoutedQueue("acme.tb_cf_state", 7),
        QueueKey(RE, CALCULATED_FIELDS, TENANT): RoutedQueue("acme.tb_cf_event", 2),
        QueueKey(RE, CALCULATED_FIELD_STATES, TENANT): RoutedQueue("acme.tb_cf_state", 2),
    }
    assert len(queues) == 7


def test_the_topics_of_an_isolated_tenant() -> None:
    entry = next(entry for entry in catalogue(DEFAULTS) if entry.queue == CALCULATED_FIELD_STATES)
    made = list(replace(entry, partitions=2).specs(DEFAULTS, tenant=TENANT))
    assert [spec.name for spec in made] == [f"tb_cf_state.isolated.{TENANT}.{number}" for number in range(2)]
    assert all(spec.is_compacted for spec in made)
