"""What notification topics and groups are called, and what the topics are like."""

import pytest

from queuecore.catalogue import edge_specs, service_specs, specs
from queuecore.cluster.notifications import (
    inbox_addresses,
    inbox_group,
    inbox_specs,
    notification_address,
    notification_bases,
    personal_families,
)
from queuecore.cluster.services import ServiceInfo
from queuecore.config.queue_tree import CoreSettings, QueueSettings, VersionControlSettings
from queuecore.providers.base import DAY_MS
from queuecore.topics import ServiceType, notification_topic

ALL = ServiceInfo("svc-1")
RENAMED = QueueSettings(prefix="acme", core=CoreSettings(topic="kernel"), vc=VersionControlSettings(topic="git"))


def test_every_service_type_has_a_topic() -> None:
    assert [info.full_topic_name for info in inbox_addresses(ALL)] == [
        "tb_core.notifications.svc-1",
        "tb_rule_engine.notifications.svc-1",
        "tb_transport.notifications.svc-1",
        "js_eval.notifications.svc-1",
        "tb_version_control.notifications.svc-1",
        "edqs.notifications.svc-1",
        "tasks.notifications.svc-1",
    ]
    assert len(set(notification_bases().values())) == len(ServiceType)


def test_names_follow_the_settings() -> None:
    core, vc = ServiceType.TB_CORE, ServiceType.TB_VC_EXECUTOR
    assert notification_address("c-1", core, RENAMED).full_topic_name == "acme.kernel.notifications.c-1"
    assert inbox_group(ServiceInfo("c-1", (core, vc)), RENAMED) == "acme.kernel-notifications-node-c-1"
    assert inbox_group(ServiceInfo("c-1", (vc, core)), RENAMED) == "acme.git-notifications-node-c-1"
    assert [spec.name for spec in inbox_specs(ServiceInfo("c-1", (vc, core)), RENAMED)] == [
        "acme.git.notifications.c-1",
        "acme.kernel.notifications.c-1",
    ]


def test_two_types_with_the_same_topic_share_it() -> None:
    settings = QueueSettings(vc=VersionControlSettings(topic="js_eval"))
    service = ServiceInfo("svc-1", (ServiceType.TB_VC_EXECUTOR, ServiceType.JS_EXECUTOR))
    assert [str(info) for info in inbox_addresses(service, settings)] == ["js_eval.notifications.svc-1"]
    assert [spec.name for spec in inbox_specs(service, settings)] == ["js_eval.notifications.svc-1"]


def test_topics_are_as_the_catalogue_says_or_short_lived() -> None:
    made = {spec.name: spec for spec in inbox_specs(ALL)}
    assert {spec.partitions for spec in made.values()} == {1}
    [core] = [one for one in service_specs(QueueSettings(), ServiceType.TB_CORE, "svc-1") if one.name in made]
    assert made[core.name] == core
    assert made["tb_transport.notifications.svc-1"].retention_ms == 7 * DAY_MS
    assert made["js_eval.notifications.svc-1"].retention_ms == DAY_MS // 24


@pytest.mark.parametrize("settings", [QueueSettings(), RENAMED])
def test_an_instances_own_topics_are_told_from_all_others(settings: QueueSettings) -> None:
    def is_personal(topic: str) -> bool:
        return any(topic.startswith(family) for family in personal_families(settings))

    own = {spec.name for one in ServiceType for spec in service_specs(settings, one, "svc-1")}
    own |= {spec.name for spec in inbox_specs(ALL, settings)}
    assert all(map(is_personal, own))
    others = {spec.name for spec in (*specs(settings, ["import"]), *edge_specs(settings, "edge-1"))}
    others |= {notification_topic("tb_core", "svc-1", "of.others"), f"{settings.core.topic}.isolated.x.notifications.y"}
    assert not any(map(is_personal, others))
