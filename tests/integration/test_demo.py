"""The demo's traffic: from the transport through core and rule engine and back, with the trouble it asks for."""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from queueapi import admission, runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.tenant_states import suspend_tenant
from queueapi.addressing import addresses
from queueapi.models import Queue, Tenant
from queueapi.plans import consumption_plans
from queueapi.queue_addresses import QueueAddresses
from queueapi.routing import routing_table
from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import DeliveryContext, NoComposer, Workplace
from queuecore.consuming.handlers import bind
from queuecore.deadletter.envelope import FailureStory, read_story
from queuecore.errors import UnknownQueue
from queuecore.messages import REPLAY_LETTER, TENANT_ID, QueueMessage, Record
from queuecore.queues.composing import Composer
from queuecore.sending import send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import wait_until
from queuecore.topics import SYSTEM_TENANT, ProviderPartition, TopicPartitionInfo, notification_topic
from workers.demo import handlers
from workers.demo import traffic as demo_traffic
from workers.demo.handlers import ARCHIVE_ROUND, COMPACTED, COMPACTING_WORK_S, TRANSPORT_TOPIC, keep_reading
from workers.demo.seed import NOISY, NOISY_BURST_S, NOISY_PER_S, Sample, seed
from workers.demo.traffic import STEADY_PER_S, TROUBLE_EVERY, Message, Traffic
from workers.demo.transport import SERVICE_ID, RoundTrips, Transport


@pytest.fixture
def sample(installation) -> Sample:
    return seed()


@pytest.fixture
def transport(sample: Sample) -> Iterator[Transport]:
    transport = Transport(runtime.provider())
    transport.start()
    yield transport
    transport.stop()


@pytest.fixture
def services(sample: Sample, transport: Transport) -> Iterator[list[Consumption]]:
    """Core, rule engine, archive and alarms, each consumed as it is configured."""
    queues = list(Queue.objects.select_related("tenant"))
    composer = Composer(addresses().seen_by(SYSTEM_TENANT), "demo-services")
    with ExitStack() as stopping:
        running = []
        for queue in queues:
            for plan in consumption_plans(queue, "demo-services"):
                handler = bind(queue.handler, queue.handler_options)
                running.append(Consumption(plan, runtime.provider(), handler, composer=composer))
                stopping.callback(running[-1].stop, 10)
                running[-1].start()
        yield running


def publish(messages: Iterator[Message], sample: Sample) -> int:
    count = 0
    for count, message in enumerate(messages, 1):  # noqa: B007
        demo_traffic.publish_message(sample.core, message.tenant, message.entity, message.payload)
    return count


def letters(queue: str) -> list[tuple[FailureStory, Record]]:
    found = Queue.objects.get(name=queue)
    reader = runtime.provider().reader()
    places = [ProviderPartition(found.letter_topic, number) for number in range(found.partitions)]
    return [(read_story(record.headers), record) for place in places for record in reader.read(place, 0, 1000)]


def test_seeding_can_be_repeated(sample: Sample) -> None:
    before = {queue.name: queue.handler for queue in Queue.objects.all()}
    mine = {"Core": "demo.core", "Main": "demo.rule_engine", "Alarms": "log", "Archive": "demo.archive"}
    assert before.items() >= mine.items()
    assert seed() == sample
    assert {queue.name: queue.handler for queue in Queue.objects.all()} == before


def test_the_demo_takes_over_only_a_rule_engine_that_is_as_it_was_installed(sample: Sample) -> None:
    main = Queue.objects.filter(name="Main")
    for handler, options, after in (
        ("log", {}, "demo.rule_engine"),
        ("log", {"level": "ERROR"}, "log"),
        ("forward", {"queue": "Alarms"}, "forward"),
    ):
        main.update(handler=handler, handler_options=options)
        seed()
        assert main.get().handler == after


def test_readings_make_the_round_trip(sample: Sample, transport: Transport, services: list[Consumption]) -> None:
    sent = publish(Traffic(sample, SERVICE_ID).steady(), sample)
    assert sent == STEADY_PER_S
    wait_until(lambda: transport.heard == sent)


def test_each_kind_of_trouble_leaves_its_letters(
    sample: Sample, transport: Transport, services: list[Consumption]
) -> None:
    traffic = Traffic(sample, SERVICE_ID)
    sent = sum(publish(traffic.steady(), sample) for _ in range(TROUBLE_EVERY // STEADY_PER_S))
    assert sent == TROUBLE_EVERY
    wait_until(lambda: len(letters("Core")) == 2)
    wait_until(lambda: len(letters("Main")) == 2)
    wait_until(lambda: transport.heard == sent - 4)
    told = Counter((story.exception_class.rpartition(".")[2], story.attempts) for story, _ in letters("Core"))
    assert told == {("UndecodableMessage", 1): 1, ("GivenUp", 1): 1}
    told = Counter((story.exception_class.rpartition(".")[2], story.attempts) for story, _ in letters("Main"))
    assert told == {("DownstreamUnavailable", 1): 1, ("ValueError", 1): 1}
    assert sum(consumption.counts.retried for consumption in services) >= TROUBLE_EVERY // 31
    noisy = str(Tenant.objects.get(name=NOISY).id).encode()
    assert {record.headers[TENANT_ID] for _, record in letters("Core")} == {noisy}


def test_a_reading_that_fails_until_it_is_replayed_succeeds_then(
    sample: Sample, transport: Transport, services: list[Consumption]
) -> None:
    reading = {"sensor": 1, "temperature": 20.0, "fault": "until_replayed", "transport": SERVICE_ID, "sent_at_ms": 1}
    headers = {REPLAY_LETTER: str(uuid4()).encode()}
    message = QueueMessage(uuid4(), json.dumps(reading).encode(), headers)
    main = Queue.objects.get(name="Main").partition_info(0)
    send_and_wait(runtime.provider().producer(), main, message, 10)
    wait_until(lambda: transport.heard == 1)
    assert letters("Main") == []


def test_an_alarm_has_a_queue_of_its_own(sample: Sample, transport: Transport, services: list[Consumption]) -> None:
    reading = json.dumps({"sensor": 1, "temperature": 40.0}).encode()
    message = Message(sample.noisy, next(Traffic(sample, SERVICE_ID).steady()).entity, reading)
    publish(iter([message]), sample)
    place = Queue.objects.get(name="Alarms").partition_info(0).place
    record = wait_until(lambda: runtime.provider().reader().read(place, 0, 10))[0]
    assert (record.key, record.data) == (message.entity, reading)


def test_what_was_worked_on_is_kept(sample: Sample, transport: Transport, services: list[Consumption]) -> None:
    [message, *_] = Traffic(sample, SERVICE_ID).steady()
    publish(iter([message]), sample)
    archive = Queue.objects.get(name="Archive")
    reader = runtime.provider().reader()
    places = [info.place for info in archive.partition_infos()]
    [kept] = wait_until(lambda: [record for place in places for record in reader.read(place, 0, 10)])
    assert (kept.key, kept.data) == (message.entity, message.payload)


def test_keeping_takes_longer_while_the_archive_is_compacted(monkeypatch) -> None:
    took: list[float] = []
    monkeypatch.setattr(handlers.time, "sleep", took.append)
    for offset in (0, COMPACTED - 1, COMPACTED, ARCHIVE_ROUND - 1, ARCHIVE_ROUND):
        record = Record("tb_rule_engine.archive.0", 0, offset, 1, None, {}, b"{}")
        keep_reading(record, DeliveryContext(Workplace("Archive", {}, NoComposer()), record, 1))
    assert [seconds == COMPACTING_WORK_S for seconds in took] == [True, True, False, False, True]


def test_the_same_seed_gives_the_same_readings(sample: Sample) -> None:
    clock = ManualClock()
    first, again = (list(Traffic(sample, SERVICE_ID, clock=clock).burst()) for _ in range(2))
    assert first == again
    assert {message.tenant for message in first} == {sample.noisy}


def test_what_is_no_notification_is_passed_over(sample: Sample, transport: Transport) -> None:
    info = TopicPartitionInfo(notification_topic(TRANSPORT_TOPIC, SERVICE_ID))
    for data in (b"\xff", b"{}", b"[]", b"[" * 100_000, b'{"sent_at_ms": "now", "alarm": 1}'):
        send_and_wait(runtime.provider().producer(), info, QueueMessage(None, data), 10)
    wait_until(lambda: transport.heard == 5)
    assert transport._thread.is_alive()


def test_round_trips_are_told_in_short() -> None:
    trips = RoundTrips(since_ms=1_000)
    for sent_at_ms, heard_at_ms, alarm in ((500, 2_000, True), (1_000, 1_010, False), (1_000, 1_030, True)):
        told = {"sensor": 1, "sent_at_ms": sent_at_ms, "alarm": alarm}
        trips.note(Record("topic", 0, 0, heard_at_ms, None, {}, json.dumps(told).encode()))
    assert trips.report() == "2 round trips, half within 30 ms, 99 % within 30 ms; alarms: 1"
    assert trips.report() == ""


def test_queues_are_addressed_by_name(sample: Sample) -> None:
    seen = addresses().seen_by(sample.noisy.id)
    core = Queue.objects.get(name="Core")
    assert seen.resolve("CORE", b"device-1") == seen.resolve("core", b"device-1")
    assert {seen.resolve("Core", None) for _ in range(core.partitions)} == set(core.partition_infos())
    assert str(seen.resolve(f"tb_transport.notifications.{SERVICE_ID}", None)) == (
        f"tb_transport.notifications.{SERVICE_ID}"
    )
    with pytest.raises(UnknownQueue, match="did you mean 'core'"):
        seen.resolve("Cor", None)


def test_a_tenant_s_own_queue_comes_first(sample: Sample) -> None:
    own = Queue(tenant=sample.noisy, name="Core", topic="tb_core", partitions=1)
    known = QueueAddresses(routing_table([*Queue.objects.select_related("tenant"), own]))
    assert known.seen_by(sample.noisy.id).resolve("Core", None).tenant_id == sample.noisy.id
    assert known.seen_by(sample.tenants[0].id).resolve("Core", None).tenant_id == SYSTEM_TENANT


def test_the_noisy_tenants_bursts_exceed_its_quota_and_nobody_elses(sample: Sample, monkeypatch, caplog) -> None:
    clock = ManualClock()
    monkeypatch.setattr(admission, "_process", admission.Admission(clock))
    caplog.set_level(logging.INFO, "switchyard.demo")
    traffic = Traffic(sample, SERVICE_ID, clock=clock)
    traffic._publish(traffic.steady())
    assert traffic.refused == 0
    traffic._publish(traffic.burst())
    passed = admission.admission().usage(sample.noisy.id).messages
    assert passed == NOISY_PER_S * NOISY_BURST_S
    assert traffic.refused == admission.admission().usage(sample.noisy.id).refused > 0
    assert caplog.text.count("readings are refused") == 1
    assert all(admission.admission().usage(tenant.id).refused == 0 for tenant in sample.tenants)


def test_the_traffic_goes_on_while_a_tenant_is_suspended(sample: Sample) -> None:
    suspend_tenant(SYSTEM, sample.noisy, "too noisy")
    traffic = Traffic(sample, SERVICE_ID)
    traffic._publish(traffic.steady())
    assert 0 < traffic.refused < STEADY_PER_S
