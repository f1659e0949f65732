"""Creating and changing queues: what is refused, with what to enter instead, and what is audited."""

import pytest
from django.db import IntegrityError

from queueapi import runtime
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.choices import OperationState
from queueapi.errors import InvalidInput
from queueapi.models import AuditEntry, Queue
from queueapi.plans import consumption_plans, other_groups
from queuecore.consuming.handler_options import HIDDEN
from queuecore.consuming.handlers import handler
from queuecore.deadletter.policy import OnLimit
from queuecore.delivery import Delivery
from queuecore.errors import InvalidName, ProviderUnavailable
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.providers.base import TopicSpec
from queuecore.submit.strategies import Batch, Burst
from workers.handlers.webhook import Webhook
from workers.handlers.webhook_options import WebhookOptions

handler("test.another_hook", options=WebhookOptions)(Webhook)

OPERATOR = Actor("ada")
HOOK = {"url": "https://hooks.example.org/x", "secret": "s3cret-enough-for-a-signature-0123"}
HIDDEN_URL = f"https://hooks.example.org/{HIDDEN}"


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def create(installation, **fields) -> Queue:
    return create_queue(
        SYSTEM, installation.tenant, **{"name": "Own", "topic": "own", "handler": "log", "partitions": 2, **fields}
    )


def test_a_new_queue_is_as_the_seeds_say(installation) -> None:
    queue = create(installation)
    [first, second] = consumption_plans(queue, "host-1")
    assert (first.submit, first.processing.kind) == (Burst(), ProcessingStrategyType.SKIP_ALL_FAILURES)
    assert (first.processing.retries, first.timeout_ms, first.delivery) == (3, 60_000, Delivery.AT_LEAST_ONCE)
    assert (first.letters.enabled, first.letters.topic, first.concurrency) == (True, "", 4)
    assert (first.member_id, second.member_id) == ("partition-0", "partition-1")
    assert second.group == f"tb_rule_engine_own-isolated-{installation.tenant.id}-consumer-1"
    assert (second.queue_id, second.service_id) == (str(queue.id), "host-1")


def test_one_consumer_may_read_all_partitions(installation) -> None:
    queue = create(installation, consumer_per_partition=False)
    [plan] = consumption_plans(queue, "host-1")
    assert plan.group == f"tb_rule_engine_own-isolated-{installation.tenant.id}-consumer"
    assert ([info.partition for info in plan.infos], plan.member_id) == ([0, 1], None)
    assert other_groups(queue) == [f"{plan.group}-0", f"{plan.group}-1"]


def test_a_plan_says_all_that_the_row_does(installation) -> None:
    [plan, _] = consumption_plans(
        create(
            installation,
            submit_strategy="BATCH",
            batch_size=7,
            processing_strategy="RETRY_ALL",
            retries=0,
            failure_percentage=40,
            retry_pause_ms=10,
            max_retry_pause_ms=20,
            delivery="exactly_once",
            concurrency=9,
            pack_processing_timeout_ms=1500,
            dlq_topic="graveyard",
            dlq_max_ratio=0.5,
            dlq_max_count=10,
            dlq_window_s=30,
            dlq_on_limit="halt",
        ),
        "",
    )
    assert (plan.submit, plan.delivery, plan.concurrency, plan.timeout_ms) == (Batch(7), "exactly_once", 9, 1500)
    processing, letters = plan.processing, plan.letters
    assert (processing.kind, processing.retries, processing.failure_percentage) == ("RETRY_ALL", 0, 40)
    assert (processing.pause_ms, processing.max_pause_ms) == (10, 20)
    assert (letters.topic, letters.max_ratio, letters.max_count, letters.window_s) == ("graveyard", 0.5, 10, 30)
    assert letters.on_limit is OnLimit.HALT


def test_topics_of_letters_and_state_are_created(installation) -> None:
    queue = create(installation, dlq_topic="graveyard", state_topic="own_state")
    topics = runtime.provider().admin().topics()
    assert topics["graveyard"].partitions == 2
    states = [topics[name] for name in queue.state_topic_names()]
    assert [(spec.partitions, spec.is_compacted) for spec in states] == [(1, True)] * 2
    assert not any(name.endswith(".dlq") and name.startswith("own") for name in topics)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"submit_strategy": "ALL_AT_ONCE"}, "there is no 'ALL_AT_ONCE'; choose one of BURST, BATCH, SEQUENTIAL"),
        ({"processing_strategy": "SKIP"}, "there is no 'SKIP'; choose one of SKIP_ALL_FAILURES"),
        ({"delivery": "twice"}, "there is no 'twice'; choose one of at_most_once"),
        ({"dlq_on_limit": "explode"}, "there is no 'explode'; choose one of pause_partition"),
        ({"failure_percentage": 101}, "failure_percentage: "),
        ({"dlq_max_ratio": 0}, "dlq_max_ratio: use more than 0, and at most 1 for no limit"),
        ({"concurrency": 0}, "concurrency: "),
        ({"batch_size": 0}, "batch_size: "),
        ({"pack_processing_timeout_ms": 0}, "pack_processing_timeout_ms: "),
        ({"dlq_window_s": 0}, "dlq_window_s: "),
        ({"retry_pause_ms": 9000}, "max_retry_pause_ms: use no less than retry_pause_ms"),
        ({"retries": "often"}, "retries: "),
        ({"handler_options": []}, "handler_options: give an object"),
        ({"handler": "webhok"}, "did you mean 'webhook'?"),
        ({"handler": "webhook"}, "the option 'url' is missing"),
        ({"handler_options": {"levle": "DEBUG"}}, "there is no option 'levle'; did you mean 'level'?"),
        ({"dlq_topic": "a b"}, "dlq_topic: topic 'a b' may hold only"),
        ({"dlq_topic": "telemetry.0"}, "dlq_topic: telemetry.0 holds messages of queue Telemetry"),
        ({"dlq_topic": "queue.metrics"}, "dlq_topic: queue.metrics is where the runtime reports to"),
        ({"state_topic": "telemetry.1"}, "state_topic: telemetry.1 holds messages of queue Telemetry"),
        ({"state_topic": "queue.metrics"}, "state_topic: queue.metrics is where"),
        ({"state_topic": "same", "dlq_topic": "same"}, "state_topic: same holds dead letters of queue"),
        ({"handler_options": {"level": "\ud800"}}, "handler_options: a text has half of a surrogate pair"),
        ({"handler_options": {"a\0": 1}}, "handler_options: a text has the character NUL"),
        ({"handler_options": {"level": float("nan")}}, "handler_options: nan is no number"),
        ({"handler_options": {"level": nested(50)}}, "handler_options: it is nested more than 20 deep"),
        ({"retrys": 3}, "a queue has no field 'retrys'; did you mean retries?"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_enter(installation, wrong, told) -> None:
    with pytest.raises(InvalidInput) as refused:
        create(installation, **wrong)
    assert told in refused.value.message
    with pytest.raises(InvalidInput):
        change_queue(OPERATOR, installation.queue, **wrong)
    assert not Queue.objects.filter(name="Own").exists()


def test_messages_are_forwarded_only_to_what_the_queues_tenant_sees(installation) -> None:
    stranger = create_tenant(SYSTEM, "Stranger")
    create_queue(SYSTEM, stranger, name="Theirs", topic="theirs", handler="log")
    own = create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log")
    for target in ("telemetry", "tb_core.notifications.core-1"):
        change_queue(SYSTEM, own, handler="forward", handler_options={"queue": target})
    for target, hint in (("telemetri", "did you mean 'telemetry'"), ("Theirs", "there are: own, telemetry")):
        with pytest.raises(InvalidInput, match=f"queue Own: there is no queue '{target}'; {hint}"):
            change_queue(SYSTEM, own, handler_options={"queue": target})


def test_a_topic_that_kafka_would_take_for_another_is_refused(installation) -> None:
    create(installation, topic="a.b", partitions=1)
    with pytest.raises(InvalidName, match=r"differ in '\.' and '_' alone"):
        create(installation, name="Other", topic="a_b", partitions=1)
    with pytest.raises(InvalidName, match=r"differ in '\.' and '_' alone"):
        change_queue(OPERATOR, installation.queue, dlq_topic="telemetry_0")


def test_letters_need_a_partition_for_each_of_the_queues(installation) -> None:
    create(installation, dlq_topic="graveyard", partitions=2)
    with pytest.raises(InvalidInput, match="graveyard is there with 2 partitions"):
        change_queue(OPERATOR, installation.queue, dlq_topic="graveyard")
    assert change_queue(OPERATOR, create(installation, name="Small", topic="small"), dlq_topic="graveyard").dlq_topic


def test_state_belongs_to_one_queue(installation) -> None:
    create(installation, state_topic="own_state")
    with pytest.raises(InvalidInput, match="holds the state of queue Own"):
        create(installation, name="Other", topic="other", state_topic="own_state")


def test_no_topic_holds_two_kinds_of_things(installation) -> None:
    create_queue(SYSTEM, installation.queue.tenant, name="One", topic="one", handler="log", dlq_topic="two.0")
    with pytest.raises(InvalidInput, match=r"topic: two\.0 holds dead letters of queue One"):
        create_queue(SYSTEM, installation.queue.tenant, name="Two", topic="two", handler="log")
    state = create(installation, state_topic="own_state").state_topic_names()[0]
    with pytest.raises(InvalidInput, match=r"dlq_topic: own_state\S+ holds the state of queue Own"):
        change_queue(OPERATOR, installation.queue, dlq_topic=state)
    with pytest.raises(InvalidInput, match=r"state_topic: telemetry\.dlq holds dead letters of queue Telemetry"):
        create(installation, name="Other", topic="other", state_topic="telemetry.dlq")
    with pytest.raises(InvalidInput, match="holds payloads of dead letters of queue Telemetry"):
        create(installation, name="Other", topic="other", dlq_topic="telemetry.dlq.payloads")


def test_letters_are_not_kept_in_compacted_topics(installation) -> None:
    runtime.provider().admin().create_topics([TopicSpec("compacted", 3, cleanup="compact")])
    with pytest.raises(InvalidInput, match="compacted is a compacted topic"):
        change_queue(OPERATOR, installation.queue, dlq_topic="compacted")


def test_what_a_provider_missed_is_made_up_for_by_repeating_the_change(installation, monkeypatch) -> None:
    with monkeypatch.context() as away:

        def fail(queue: Queue) -> None:
            raise ProviderUnavailable("the provider is away")

        away.setattr("queueapi.actions.provisioning.provision_queue", fail)
        waiting = change_queue(OPERATOR, installation.queue, dlq_topic="graveyard").operation
        assert waiting.state_choice is OperationState.RUNNING
        assert waiting.log.get().text == "waits and will try again: the provider is away"
    assert "graveyard" not in runtime.provider().admin().topics()
    repeated = change_queue(OPERATOR, installation.queue, dlq_topic="graveyard").operation
    assert (repeated.state_choice, repeated == waiting) == (OperationState.SUCCEEDED, False)
    assert "graveyard" in runtime.provider().admin().topics()


@pytest.mark.parametrize("field", ["name", "topic", "service_type", "tenant", "id"])
def test_what_stored_messages_depend_on_never_changes(installation, field) -> None:
    with pytest.raises(InvalidInput, match=f"{field} of a queue never changes"):
        change_queue(OPERATOR, installation.queue, **{field: "x"})


def test_a_change_is_audited_with_what_was_before(installation) -> None:
    changed = change_queue(OPERATOR, installation.queue, retries="5", processing_strategy="RETRY_ALL")
    assert (changed.retries, Queue.objects.get(pk=changed.pk).processing_strategy) == (5, "RETRY_ALL")
    entry = AuditEntry.objects.get(action="change")
    assert (entry.actor_name, entry.object_id) == ("ada", str(changed.id))
    assert entry.before == {"processing_strategy": "RETRY_FAILED", "retries": 1}
    assert entry.after == {"processing_strategy": "RETRY_ALL", "retries": 5}


def test_who_comes_second_at_the_same_moment_hears_why(installation, monkeypatch) -> None:
    create(installation)
    monkeypatch.setattr("queueapi.actions.queues.check_new_queue", lambda queue: None)
    with pytest.raises(InvalidInput, match="somebody else has just created a queue Own"):
        create(installation)


def test_what_changes_nothing_is_not_written(installation) -> None:
    change_queue(OPERATOR, installation.queue, retries=1)
    assert not AuditEntry.objects.filter(action="change").exists()


def test_secrets_of_handlers_are_kept_and_shown_to_nobody(installation) -> None:
    queue = create(installation, handler="webhook", handler_options=HOOK)
    hidden = {"url": HIDDEN_URL, "secret": HIDDEN}
    assert AuditEntry.objects.get(object_id=str(queue.id)).after["handler_options"] == hidden
    kept = change_queue(OPERATOR, queue, handler_options={**hidden, "timeout_ms": 500})
    assert kept.handler_options == {**HOOK, "timeout_ms": 500}
    assert AuditEntry.objects.get(action="change").after["handler_options"] == {**hidden, "timeout_ms": 500}


@pytest.mark.parametrize(
    "change",
    [
        {"handler_options": {"url": "https://evil.example.net/", "secret": HIDDEN}},
        {"handler_options": {"url": f"https://evil.example.net/{HIDDEN}"}},
        {"handler_options": {"url": "http://hooks.example.org/x", "secret": HIDDEN}},
        {"handler_options": {"url": HIDDEN_URL, "secret": HIDDEN, "headers": HIDDEN}},
        {"handler": "test.another_hook"},
        {"handler": "test.another_hook", "handler_options": {"url": HIDDEN_URL, "secret": HIDDEN}},
    ],
)
def test_secrets_go_to_nobody_else_than_they_were_entered_for(installation, change) -> None:
    queue = create(installation, handler="webhook", handler_options=HOOK)
    with pytest.raises(InvalidInput, match="enter the value itself"):
        change_queue(OPERATOR, queue, **change)
    assert Queue.objects.get(pk=queue.pk).handler_options == HOOK


def test_another_host_gets_the_secrets_that_are_entered_for_it(installation) -> None:
    queue = create(installation, handler="webhook", handler_options=HOOK)
    moved = {"url": "https://other.example.org/y", "secret": "another-s3cret-for-a-signature"}
    assert change_queue(OPERATOR, queue, handler_options=moved).handler_options == moved


@pytest.mark.parametrize(
    "wrong",
    [{"concurrency": 0}, {"batch_size": 0}, {"failure_percentage": 100.5}, {"dlq_max_ratio": 0.0}, {"dlq_window_s": 0}],
)
def test_the_database_itself_holds_no_queue_out_of_range(installation, wrong) -> None:
    with pytest.raises(IntegrityError):
        Queue.objects.filter(pk=installation.queue.pk).update(**wrong)
