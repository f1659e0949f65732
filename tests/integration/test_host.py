"""A host with real consumers: what it starts, what changes live, what pauses, and how it ends."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from django.db import DataError

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.dead_letters import discard_letters
from queueapi.actions.messages import publish_message
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.actions.queue_ends import delete_queue
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.choices import ConsumerState, OperationState, QueueState
from queueapi.models import ConsumerStanding, DeadLetter, Pause, Queue, StaleCommits
from queueapi.selectors.consumers import refusals_of
from queuecore.consuming.context import DeliveryContext, MessageHandler
from queuecore.consuming.handlers import handler
from queuecore.hashing import partition_of
from queuecore.messages import Record
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.instances import partitions_of
from tests.integration.queue_kit import run_to_end, run_until_told
from workers.host import ConsumerHost


class Desk:
    """What the handler under test saw, and what it shall do."""

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self.attempts: Counter[bytes] = Counter()
        self.failing = False
        # Handlers of messages that begin with `wait` stand here.
        self.gate = threading.Event()
        self.waiting = threading.Event()


_desk = Desk()


@handler("test.host")
def handle(record: Record, context: DeliveryContext) -> None:
    desk = _desk
    desk.attempts[record.data] += 1
    if desk.failing:
        raise RuntimeError("as asked")
    if record.data.startswith(b"wait"):
        desk.waiting.set()
        desk.gate.wait(30)
    desk.handled.append(record.data)


@handler("test.host.other")
def handle_otherwise(record: Record, context: DeliveryContext) -> None:
    _desk.handled.append(b"other " + record.data)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """What is decorated is called for each queue, as it has options."""


@handler("test.host.exiting", options=NoOptions)
def exit_when_made(options: NoOptions) -> MessageHandler:
    raise SystemExit("as asked")


@pytest.fixture
def desk() -> Iterator[Desk]:
    global _desk
    _desk = Desk()
    yield _desk
    _desk.gate.set()


@pytest.fixture
def queue(installation, desk) -> Queue:
    return create_queue(
        SYSTEM, installation.queue.tenant, name="Hosted", topic="hosted", handler="test.host", partitions=2
    )


class Hosts:
    """Starts hosts, and stops those that a test leaves running."""

    def __init__(self) -> None:
        self.deaths: list[str] = []
        self._running: list[ConsumerHost] = []

    def start(self, name: str = "host-1", gives_way: Callable[[], bool] = lambda: False) -> ConsumerHost:
        host = ConsumerHost(name, on_death=self.deaths.append, gives_way=gives_way)
        host.start()
        self._running.append(host)
        return host

    def stop_all(self) -> None:
        for host in self._running:
            host.stop()
        self._running.clear()


@pytest.fixture
def hosts(installation) -> Iterator[Hosts]:
    hosts = Hosts()
    yield hosts
    hosts.stop_all()


def entity_of(partition: int) -> UUID:
    """One whose messages go there, of two partitions."""
    return next(entity for entity in iter(uuid4, None) if partition_of(entity, 2) == partition)


def publish(queue: Queue, tenant, data: bytes, partition: int = 0) -> None:
    publish_message(queue, tenant, entity_of(partition), data)


def standing(queue: Queue, partition: int = 0) -> ConsumerStanding | None:
    rows = ConsumerStanding.objects.filter(queue=queue)
    return next((row for row in rows if partition in row.partitions), None)


def wait_for_state(queue: Queue, state: ConsumerState, partition: int = 0) -> ConsumerStanding:
    return wait_until(lambda: (row := standing(queue, partition)) and row.state == state and row)


def committed(queue: Queue, group: str, partition: int = 0) -> int | None:
    place = queue.partition_info(partition).place
    return runtime.provider().admin().committed_offsets({group: [place]})[group].get(place)


def test_consumers_tell_how_they_are(installation, queue, desk, hosts) -> None:
    hosts.start()
    for number in range(5):
        publish(queue, installation.tenant, b"%d" % number)
    row = wait_until(lambda: (row := standing(queue)) and row.counts.get("handled") == 5 and row)
    assert (row.service_id, row.state_choice) == ("host-1", ConsumerState.RUNNING)
    assert (row.counts["polled"], row.counts["total"], row.counts["succeeded"]) == (5, 5, 5)
    assert row.tenants == {str(installation.tenant.id): {"total": 5, "succeeded": 5}}
    assert row.consumer_group == "tb_rule_engine_hosted-consumer-0"
    assert row.budget.keys() == {"poll", "process", "back_pressure", "commit"}
    wait_until(lambda: partitions_of("host-1") == 3 + 2)
    hosts.stop_all()
    assert not ConsumerStanding.objects.exists()


def test_commits_that_come_too_late_are_counted_for_good(installation, queue, desk, hosts) -> None:
    """Its consumer ends, and what it counted goes with it."""
    hosts.start()
    publish(queue, installation.tenant, b"wait")
    assert desk.waiting.wait(DEADLINE_S)
    info, group = queue.partition_info(0), "tb_rule_engine_hosted-consumer-0"
    successor = runtime.provider().consumer(group, member_id="partition-0")
    successor.subscribe([info], epochs={info.place: 1_000})
    assert wait_until(lambda: successor.poll(100))
    successor.commit()
    desk.gate.set()
    wait_until(lambda: StaleCommits.objects.filter(queue=queue, refused__gte=1).exists())
    successor.stop()
    hosts.stop_all()
    assert not ConsumerStanding.objects.exists()
    assert refusals_of(queue).commits


def test_a_change_of_strategy_is_applied_without_a_restart(installation, queue, desk, hosts, caplog) -> None:
    caplog.set_level("INFO")
    hosts.start()
    desk.failing = True
    publish(queue, installation.tenant, b"skipped")
    wait_until(lambda: DeadLetter.objects.filter(queue=queue).count() == 1)
    assert desk.attempts[b"skipped"] == 1
    change_queue(SYSTEM, queue, processing_strategy="RETRY_FAILED", retries=2, retry_pause_ms=1, max_retry_pause_ms=1)

    def is_applied() -> bool:
        data = uuid4().bytes
        publish(queue, installation.tenant, data)
        before = DeadLetter.objects.filter(queue=queue).count()
        wait_until(lambda: DeadLetter.objects.filter(queue=queue).count() > before - 1 and desk.attempts[data])
        wait_until(lambda: committed(queue, "tb_rule_engine_hosted-consumer-0") == len(desk.attempts))
        return desk.attempts[data] == 3

    wait_until(is_applied)
    assert "begins anew" not in caplog.text


def test_another_handler_takes_over_where_the_first_one_ended(installation, queue, desk, hosts) -> None:
    hosts.start()
    publish(queue, installation.tenant, b"a")
    wait_until(lambda: desk.handled == [b"a"])
    change_queue(SYSTEM, queue, handler="test.host.other")

    def is_other() -> bool:
        publish(queue, installation.tenant, b"b")
        wait_until(lambda: committed(queue, "tb_rule_engine_hosted-consumer-0") == len(desk.handled))
        return desk.handled[-1] == b"other b"

    wait_until(is_other)
    assert desk.handled.count(b"a") == 1


def test_one_consumer_for_all_goes_on_where_one_for_each_ended_and_back(installation, queue, desk, hosts) -> None:
    hosts.start()
    handled = []
    for number, shared in enumerate([False, True, False]):
        if number:
            change_queue(SYSTEM, queue, consumer_per_partition=not shared)
            groups = {f"tb_rule_engine_hosted-consumer{'' if shared else f'-{one}'}" for one in (0, 1)}
            rows = ConsumerStanding.objects.filter(queue=queue, state=ConsumerState.RUNNING)
            wait_until(lambda groups=groups, rows=rows: set(rows.values_list("consumer_group", flat=True)) == groups)
        for partition in (0, 1):
            data = b"%d in %d" % (number, partition)
            handled.append(data)
            publish(queue, installation.tenant, data, partition)
        wait_until(lambda: len(desk.handled) >= len(handled))
    assert sorted(desk.handled) == sorted(handled)
    wait_until(lambda: committed(queue, "tb_rule_engine_hosted-consumer-1", 1) == 3)
    assert committed(queue, "tb_rule_engine_hosted-consumer", 1) is None


def test_a_paused_tenant_waits_and_the_others_go_on(installation, queue, desk, hosts) -> None:
    noisy = create_tenant(SYSTEM, "Noisy")
    pause_queue(SYSTEM, queue, tenant=noisy, reason="too noisy")
    hosts.start()
    publish(queue, noisy, b"noisy")
    publish(queue, installation.tenant, b"quiet")
    wait_until(lambda: desk.handled == [b"quiet"])
    assert resume_queue(SYSTEM, queue, tenant=noisy)
    wait_until(lambda: desk.handled == [b"quiet", b"noisy"])


def test_a_pause_outlives_its_host(installation, queue, desk, hosts) -> None:
    hosts.start()
    publish(queue, installation.tenant, b"before")
    wait_until(lambda: desk.handled == [b"before"])
    pause_queue(SYSTEM, queue, reason="billing is away")
    wait_for_state(queue, ConsumerState.PAUSED)
    hosts.stop_all()
    publish(queue, installation.tenant, b"meanwhile")
    hosts.start("host-2")
    row = wait_for_state(queue, ConsumerState.PAUSED)
    assert (row.service_id, row.reason) == ("host-2", "billing is away")
    assert desk.handled == [b"before"]
    resume_queue(SYSTEM, queue)
    wait_until(lambda: desk.handled == [b"before", b"meanwhile"])


def test_a_paused_partition_leaves_the_other_going(installation, queue, desk, hosts) -> None:
    pause_queue(SYSTEM, queue, partition=0, reason="poison")
    hosts.start()
    publish(queue, installation.tenant, b"held", 0)
    publish(queue, installation.tenant, b"free", 1)
    wait_until(lambda: desk.handled == [b"free"])
    resume_queue(SYSTEM, queue, partition=0)
    wait_until(lambda: desk.handled == [b"free", b"held"])


def test_a_partition_with_too_many_letters_pauses_itself_until_somebody_resumes_it(
    installation, queue, desk, hosts
) -> None:
    change_queue(SYSTEM, queue, dlq_max_count=2)
    hosts.start()
    desk.failing = True
    for number in range(4):
        publish(queue, installation.tenant, b"%d" % number)
    pause = wait_until(lambda: Pause.objects.filter(queue=queue).first())
    assert (pause.partition, pause.paused_by, pause.is_by_system) == (0, "system", True)
    assert "had more dead letters within 60 s than its queue allows" in pause.reason
    wait_until(lambda: DeadLetter.objects.filter(queue=queue).count() == 2)
    publish(queue, installation.tenant, b"elsewhere", 1)
    wait_until(lambda: desk.attempts[b"elsewhere"])
    desk.failing = False
    resume_queue(SYSTEM, queue, partition=0)
    wait_until(lambda: len(desk.handled) == 2)
    assert DeadLetter.objects.filter(queue=queue).count() == 3
    assert not Pause.objects.exists()


def test_a_queue_that_halts_at_its_limit_is_paused_as_a_whole(installation, queue, desk, hosts) -> None:
    change_queue(SYSTEM, queue, dlq_max_count=1, dlq_on_limit="halt")
    hosts.start()
    desk.failing = True
    for number in range(3):
        publish(queue, installation.tenant, b"%d" % number)
    pause = wait_until(lambda: Pause.objects.filter(queue=queue).first())
    assert (pause.partition, pause.tenant, pause.paused_by) == (None, None, "system")
    wait_for_state(queue, ConsumerState.PAUSED)
    wait_for_state(queue, ConsumerState.PAUSED, 1)
    desk.failing = False
    resume_queue(SYSTEM, queue)
    wait_until(lambda: {b"1", b"2"} <= {*desk.handled})


def test_stopping_finishes_what_is_at_hand_and_hands_over_no_more(installation, queue, desk, hosts) -> None:
    change_queue(SYSTEM, queue, submit_strategy="SEQUENTIAL")
    host = hosts.start()
    for data in (b"wait", b"next"):
        publish(queue, installation.tenant, data)
    assert desk.waiting.wait(30)
    stopping = threading.Thread(target=host.stop)
    stopping.start()
    wait_until(lambda: all(one._is_ending or one._consumption is None for one in host._everyone()))
    desk.gate.set()
    stopping.join()
    assert desk.handled == [b"wait"]
    assert committed(queue, "tb_rule_engine_hosted-consumer-0") == 1


def test_who_gives_way_waits_for_nothing_and_the_message_comes_again(installation, queue, desk, hosts) -> None:
    host = hosts.start()
    publish(queue, installation.tenant, b"wait")
    assert desk.waiting.wait(30)
    host.give_way()
    assert not desk.handled
    assert committed(queue, "tb_rule_engine_hosted-consumer-0") is None
    desk.gate.set()
    hosts.start("host-2")
    wait_until(lambda: desk.attempts[b"wait"] == 2)


def test_a_stop_that_takes_too_long_can_be_cut_short(installation, queue, desk, hosts) -> None:
    cold = threading.Event()
    host = hosts.start(gives_way=cold.is_set)
    publish(queue, installation.tenant, b"wait")
    assert desk.waiting.wait(30)
    stopping = threading.Thread(target=host.stop)
    stopping.start()
    wait_until(lambda: all(one._is_ending or one._consumption is None for one in host._everyone()))
    cold.set()
    stopping.join()
    assert not desk.handled
    desk.gate.set()


def test_who_is_to_give_way_does_so_before_anybody_comes_to_stop_it(installation, queue, desk, hosts) -> None:
    """Celery takes its time."""
    cold = threading.Event()
    change_queue(SYSTEM, queue, submit_strategy="SEQUENTIAL")
    host = hosts.start(gives_way=cold.is_set)
    for data in (b"wait", b"next"):
        publish(queue, installation.tenant, data)
    assert desk.waiting.wait(30)
    cold.set()
    wait_until(lambda: all(one.wait_for_end(0) for one in host._everyone()))
    desk.gate.set()
    wait_until(lambda: desk.handled == [b"wait"])
    assert committed(queue, "tb_rule_engine_hosted-consumer-0") is None
    hosts.start("host-2")
    wait_until(lambda: desk.handled == [b"wait", b"wait", b"next"])
    assert not hosts.deaths


def test_handlers_that_are_stuck_end_the_worker(installation, queue, desk, hosts) -> None:
    change_queue(SYSTEM, queue, pack_processing_timeout_ms=10, concurrency=1)
    hosts.start()
    for number in range(40):
        publish(queue, installation.tenant, b"wait %d" % number)
    wait_until(lambda: hosts.deaths)
    assert "handlers overran their time and still run" in hosts.deaths[0]
    desk.gate.set()


def test_a_queue_whose_configuration_is_broken_waits_until_it_is_mended(
    installation, queue, desk, hosts, caplog
) -> None:
    Queue.objects.filter(pk=queue.pk).update(handler_options={"colour": "red"})
    hosts.start()
    publish(queue, installation.tenant, b"a")
    row = wait_for_state(queue, ConsumerState.STANDING_STILL)
    assert "there is no option 'colour'" in row.reason
    assert caplog.text.count("Hosted[0] stands still") == 1
    change_queue(SYSTEM, queue, handler_options={})
    wait_until(lambda: desk.handled == [b"a"])


def test_a_handler_that_would_end_the_process_lets_its_queue_alone_stand_still(
    installation, queue, desk, hosts
) -> None:
    exiting = create_queue(
        SYSTEM, installation.queue.tenant, name="Exiting", topic="exiting", handler="test.host.exiting"
    )
    hosts.start()
    assert wait_for_state(exiting, ConsumerState.STANDING_STILL).reason == "SystemExit: as asked"
    publish(queue, installation.tenant, b"a")
    wait_until(lambda: desk.handled == [b"a"])
    assert not hosts.deaths


def test_whatever_ends_the_hosts_thread_ends_the_worker(installation, hosts, monkeypatch) -> None:
    def end(*_: object) -> None:
        raise SystemExit("as asked")

    monkeypatch.setattr(ConsumerHost, "_look", end)
    hosts.start()
    wait_until(lambda: hosts.deaths == ["consumer host: SystemExit: as asked"])


@pytest.mark.parametrize("field", ["delivery", "submit_strategy", "dlq_on_limit", "service_type"])
def test_a_row_that_cannot_be_understood_is_that_queues_trouble_alone(
    installation, queue, desk, hosts, field, caplog
) -> None:
    Queue.objects.filter(pk=installation.queue.pk).update(**{field: "later"})
    hosts.start()
    publish(queue, installation.tenant, b"a")
    wait_until(lambda: desk.handled == [b"a"])
    assert "queue Telemetry is not consumed, its messages wait: there is no" in caplog.text
    assert not hosts.deaths


def test_topics_that_are_missing_are_created(installation, queue, desk, hosts) -> None:
    admin = runtime.provider().admin()
    admin.delete_topics([*queue.topic_names(), queue.letter_topic])
    hosts.start()
    wait_until(lambda: {*queue.topic_names(), queue.letter_topic} <= admin.topics().keys())
    publish(queue, installation.tenant, b"a")
    wait_until(lambda: desk.handled == [b"a"])


def test_a_letter_topic_that_is_missing_is_created_when_it_is_missed(
    installation, queue, desk, hosts, monkeypatch
) -> None:
    """As if the provider had been away when the queue was changed."""
    hosts.start()
    publish(queue, installation.tenant, b"a")
    wait_until(lambda: desk.handled == [b"a"])
    Queue.objects.filter(pk=queue.pk).update(dlq_topic="graveyard")
    desk.failing = True
    publish(queue, installation.tenant, b"b")
    wait_until(lambda: DeadLetter.objects.filter(queue=queue).exists())

    def is_missed() -> bool:
        publish(queue, installation.tenant, uuid4().bytes)
        return "graveyard" in runtime.provider().admin().topics()

    wait_until(is_missed)
    wait_until(lambda: DeadLetter.objects.filter(letter_topic="graveyard").exists())


def test_a_pause_that_cannot_be_stored_keeps_nobody_from_the_configuration(
    installation, queue, desk, hosts, monkeypatch, caplog
) -> None:
    change_queue(SYSTEM, queue, dlq_max_count=1)
    refused = threading.Event()

    def refuse(*_: object, **__: object) -> None:
        refused.set()
        raise DataError("as asked")

    monkeypatch.setattr("workers.host.pause_queue", refuse)
    hosts.start()
    desk.failing = True
    for number in range(3):
        publish(queue, installation.tenant, b"%d" % number)
    assert refused.wait(30)
    desk.failing = False
    target = create_queue(SYSTEM, installation.queue.tenant, name="Later", topic="later", handler="test.host")
    publish_message(target, installation.tenant, uuid4(), b"later")
    wait_until(lambda: b"later" in desk.handled)
    assert caplog.text.count("the pause cannot be stored") == 1
    assert not hosts.deaths


def test_what_begins_when_it_is_wanted_no_longer_ends_at_once(installation, queue, desk, monkeypatch) -> None:
    """A slow provider answers only after the host has stopped."""
    host = ConsumerHost("host-1", on_death=lambda _: None)
    monkeypatch.setattr(type(host._agent), "held", {str(queue.partition_info(0)): 1})
    host._read_configuration()
    host._reconcile(begins=True)
    consumer = host._consumers[queue.id, "tb_rule_engine_hosted-consumer-0"]
    monkeypatch.setattr("workers.consumers.inherit_offsets", lambda *_: consumer.stop(0))
    publish(queue, installation.tenant, b"a")
    consumer.look()
    assert consumer.wait_for_end(30)
    consumer.look()
    assert consumer.wait_for_end(0)
    assert desk.handled == []
    host.give_way()


def test_a_host_that_stops_begins_nothing(installation, queue) -> None:
    host = ConsumerHost("host-1", on_death=lambda _: None)
    host._stopping.set()
    host._look()
    assert all(one._consumption is None for one in host._everyone())
    assert host._indexing.indexers == []


@pytest.mark.parametrize("each", [True, False])
def test_hosts_share_what_there_is(installation, queue, desk, hosts, each) -> None:
    change_queue(SYSTEM, queue, consumer_per_partition=each)
    for number in (1, 2):
        hosts.start(f"host-{number}")
    wait_until(lambda: sorted((partitions_of("host-1"), partitions_of("host-2"))) == [2, 3])
    for number in range(20):
        publish(queue, installation.tenant, b"%d" % number, partition=number % 2)
    wait_until(lambda: len(desk.handled) == 20)
    assert sorted(desk.handled, key=int) == [b"%d" % number for number in range(20)]


def test_handlers_send_to_queues_by_name(installation, queue, desk, hosts) -> None:
    inlet = create_queue(
        SYSTEM,
        installation.queue.tenant,
        name="Inlet",
        topic="inlet",
        handler="forward",
        handler_options={"queue": "Hosted"},
    )
    hosts.start()
    publish(inlet, installation.tenant, b"on its way")
    wait_until(lambda: desk.handled == [b"on its way"])


def test_a_queue_that_is_deleted_is_consumed_to_its_end_and_then_left(installation, queue, desk, hosts) -> None:
    host = hosts.start()
    wait_for_state(queue, ConsumerState.RUNNING)
    publish(queue, installation.tenant, b"wait for it")
    publish(queue, installation.tenant, b"another", partition=1)
    assert desk.waiting.wait(30)
    operation = delete_queue(SYSTEM, queue)
    Queue.objects.get(pk=queue.pk, state=QueueState.DRAINING)
    desk.gate.set()
    wait_until(lambda: run_to_end(operation).state_choice.is_final)
    assert operation.state == OperationState.SUCCEEDED
    assert sorted(desk.handled) == [b"another", b"wait for it"]
    wait_until(lambda: "letters in hosted.dlq" not in {one.name for one in host._indexing.indexers})
    assert not [name for name in runtime.provider().admin().topics() if name.startswith("hosted")]
    assert hosts.deaths == []


def test_a_letter_that_comes_up_while_a_queue_is_drained_holds_its_deletion(installation, queue, desk, hosts) -> None:
    hosts.start()
    desk.failing = True
    publish(queue, installation.tenant, b"bad")
    operation = delete_queue(SYSTEM, queue)
    run_until_told(operation, "waits for a decision on 1 dead letters: replay or discard them")
    discard_letters(SYSTEM, list(DeadLetter.objects.values_list("id", flat=True)), "not needed")
    wait_until(lambda: run_to_end(operation).state_choice.is_final)
    assert (operation.state, DeadLetter.objects.count()) == (OperationState.SUCCEEDED, 0)
