"""Queues: what they may be called, whose messages they take, how they are sampled."""

from uuid import uuid4

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.messages import publish_message
from queueapi.actions.provisioning import provision_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.bootstrap import bootstrap
from queueapi.config import Config
from queueapi.errors import InvalidInput
from queueapi.models import Queue
from queueapi.plans import consumption_plans
from queuecore.config import load
from queuecore.errors import InvalidName
from workers.sampling import publish_samples


@pytest.mark.parametrize("name", ["", ".", "..", "Ä", "a b", "a/b", "a\n", "a\0", "x" * 101])
def test_a_name_no_group_could_hold_is_refused_with_what_to_enter(installation, name) -> None:
    with pytest.raises(InvalidName, match="enter 1 to 100 ASCII letters, digits"):
        create_queue(SYSTEM, installation.tenant, name=name, topic="other", handler="log")


@pytest.mark.parametrize("name", ["Main", "a.b_c-1", "...", "x" * 100])
def test_ordinary_names_are_taken(installation, name) -> None:
    assert create_queue(SYSTEM, installation.tenant, name=name, topic="other", handler="log").name == name


def test_a_tenants_queue_takes_no_message_of_another(installation) -> None:
    queue = create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log")
    other = create_tenant(SYSTEM, "Other")
    with pytest.raises(InvalidInput, match=f"tenant {installation.tenant.id} alone"):
        publish_message(queue, other, uuid4(), b"")
    assert publish_message(queue, installation.tenant, uuid4(), b"").offset == 0
    assert publish_message(installation.queue, other, uuid4(), b"").offset == 0


def test_queues_whose_groups_are_called_the_same_are_both_sampled(installation) -> None:
    for number, name in enumerate(["Ä", "ä"]):
        tenant, topic = installation.queue.tenant, f"twin_{number}"
        provision_queue(Queue.objects.create(tenant=tenant, name=name, topic=topic, handler="log", partitions=2))
    assert publish_samples(runtime.provider(), "sampler") == 3 + 2 + 2


def test_a_topic_that_is_missing_keeps_no_other_from_being_sampled(installation, caplog) -> None:
    queue = create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log", partitions=2)
    [first, second] = [info.place for plan in consumption_plans(queue, "") for info in plan.infos]
    runtime.provider().admin().delete_topics([first.topic])
    assert publish_samples(runtime.provider(), "sampler") == 3 + 1
    [warning] = [one.getMessage() for one in caplog.records if one.name == "workers.sampling"]
    assert warning.startswith("1 partition(s) are not sampled")
    assert str(first) in warning
    assert str(second) not in warning


def test_main_of_a_new_installation_is_as_the_settings_say(tmp_path, settings, transactional_db) -> None:
    variables = {
        "SWITCHYARD_DATA_DIR": str(tmp_path),
        "SWITCHYARD_QUEUE_RULE_ENGINE_PARTITIONS": "2",
        "SWITCHYARD_QUEUE_RULE_ENGINE_MAX_RETRIES": "5",
        "SWITCHYARD_QUEUE_RULE_ENGINE_SUBMIT_STRATEGY_TYPE": "BATCH",
        "SWITCHYARD_QUEUE_RULE_ENGINE_SUBMIT_STRATEGY_BATCH_SIZE": "7",
        "SWITCHYARD_QUEUE_RULE_ENGINE_PROCESSING_STRATEGY_TYPE": "RETRY_ALL",
        "SWITCHYARD_QUEUE_RULE_ENGINE_DLQ_TOPIC": "graveyard",
        "SWITCHYARD_QUEUE_PACK_PROCESSING_TIMEOUT": "1500",
    }
    settings.SWITCHYARD = load(Config, variables)
    runtime.close_provider()
    bootstrap("secret")
    main = Queue.objects.get(name="Main")
    assert (main.topic, main.partitions, main.retries, main.letter_topic) == ("tb_rule_engine", 2, 5, "graveyard")
    assert (main.submit_strategy, main.batch_size, main.processing_strategy) == ("BATCH", 7, "RETRY_ALL")
    assert main.pack_processing_timeout_ms == 1500
    other = create_queue(SYSTEM, main.tenant, name="Other", topic="other", handler="log")
    assert (other.pack_processing_timeout_ms, other.submit_strategy) == (1500, "BURST")
    runtime.close_provider()
