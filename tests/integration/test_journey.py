"""The journey without processes around it: publish, host, letter, replay, outcome, samples."""

import json
from uuid import uuid4

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.letter_index import index_letters
from queueapi.actions.messages import publish_message
from queueapi.actions.replays import replay_letters
from queueapi.choices import LetterState, OperationState
from queueapi.cluster.models import ServiceInstance
from queueapi.errors import NotReplayable
from queueapi.models import ConsumerStanding, DeadLetter
from queueapi.selectors.services import services
from queuecore.messages import REPLAY_LETTER, QueueMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event
from queuecore.providers.log.files import partition_dir, segment_path
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition, dead_letter_partition
from tests.instances import partitions_of
from workers.host import ConsumerHost
from workers.operations.runner import run_operation
from workers.sampling import publish_samples


@pytest.fixture
def host(installation):
    deaths: list[str] = []
    host = ConsumerHost("host-1", on_death=deaths.append)
    host.start()
    yield host
    host.stop()
    assert not deaths


def publish(installation, **reading):
    payload = json.dumps({"sensor": 1, "temperature": 20.0, **reading}).encode()
    return publish_message(installation.queue, installation.tenant, uuid4(), payload)


def the_letter() -> DeadLetter:
    return wait_until(lambda: DeadLetter.objects.select_related("queue", "tenant").first())


def state_of(letter: DeadLetter) -> LetterState:
    return DeadLetter.objects.get(id=letter.id).state_choice


def test_a_message_that_keeps_failing_becomes_a_letter_with_its_story(installation, host) -> None:
    published = publish(installation, fault="until_replayed")
    letter = the_letter()
    assert (letter.topic, letter.offset) == (published.topic, published.offset)
    assert letter.letter_partition == published.partition
    assert (letter.queue, letter.tenant) == (installation.queue, installation.tenant)
    assert letter.exception_class == "workers.demo.handlers.DownstreamUnavailable"
    assert "answered 503" in letter.exception_message
    assert letter.attempts == 2
    assert letter.state_choice is LetterState.OPEN


def test_a_replay_that_succeeds_closes_its_letter(installation, host) -> None:
    publish(installation, fault="until_replayed")
    letter = the_letter()
    operation = replay_letters(SYSTEM, [letter.id])
    assert state_of(letter) is LetterState.REPLAYING
    run_operation(operation.id)
    operation.refresh_from_db()
    assert (operation.state_choice, operation.done) == (OperationState.SUCCEEDED, 1)
    wait_until(lambda: state_of(letter) is LetterState.REPLAYED)


def test_a_replay_that_fails_again_is_tied_to_its_letter_and_can_be_replayed(installation, host) -> None:
    publish(installation, temperature="warm")
    letter = the_letter()
    run_operation(replay_letters(SYSTEM, [letter.id]).id)
    wait_until(lambda: state_of(letter) is LetterState.FAILED_AGAIN)
    again = DeadLetter.objects.get(replay_of=letter)
    assert again.fingerprint == letter.fingerprint
    assert again.body.headers == letter.body.headers
    assert again.state_choice is LetterState.OPEN


def test_a_letter_is_not_replayed_twice_at_once(installation, host) -> None:
    publish(installation, fault="until_replayed")
    letter = the_letter()
    replay_letters(SYSTEM, [letter.id])
    with pytest.raises(NotReplayable, match="being replayed already"):
        replay_letters(SYSTEM, [letter.id])


def test_letters_delivered_twice_are_indexed_once(installation, host) -> None:
    publish(installation, fault="until_replayed")
    letter = the_letter()
    place = dead_letter_partition(installation.queue.partition_info(letter.letter_partition))
    records = runtime.provider().reader().read(place.place, 0, 10)
    assert len(records) == 1
    assert index_letters(records, runtime.provider().reader()) == 0
    assert DeadLetter.objects.count() == 1


def test_a_failure_that_passes_leaves_no_letter(installation, host) -> None:
    published = publish(installation, fault="once")
    place = installation.queue.partition_info(published.partition).place
    group = f"tb_rule_engine_telemetry-consumer-{published.partition}"
    admin = runtime.provider().admin()
    wait_until(lambda: admin.committed_offsets({group: [place]})[group].get(place) == 1)
    assert not DeadLetter.objects.exists()


def test_a_replay_header_that_is_no_id_stops_nothing(installation, host) -> None:
    info = installation.queue.partition_info(0)
    data = json.dumps({"sensor": 1, "temperature": 20.0}).encode()
    for letter in (b"not-a-uuid", b"\xff"):
        message = QueueMessage(None, data, {REPLAY_LETTER: letter})
        send_and_wait(runtime.provider().producer(), info, message, 10)
    place, group = info.place, "tb_rule_engine_telemetry-consumer-0"
    admin = runtime.provider().admin()
    wait_until(lambda: admin.committed_offsets({group: [place]})[group].get(place) == 2)


def test_damage_in_one_partition_stops_that_one_alone(installation, caplog) -> None:
    data = json.dumps({"sensor": 1, "temperature": 20.0}).encode()
    infos = [installation.queue.partition_info(number) for number in (0, 1)]
    for info in infos:
        send_and_wait(runtime.provider().producer(), info, QueueMessage(None, data, {}), 10)
    hurt, fine = (info.place for info in infos)
    segment = segment_path(partition_dir(installation.folder / "log", hurt), 0)
    segment.write_bytes(b"x" * segment.stat().st_size)
    host = ConsumerHost("host-4", on_death=lambda reason: None)
    host.start()
    group = "tb_rule_engine_telemetry-consumer-1"
    admin = runtime.provider().admin()
    wait_until(lambda: admin.committed_offsets({group: [fine]})[group].get(fine) == 1)
    wait_until(lambda: "Telemetry[0] stands still" in caplog.text)
    host.stop()
    assert str(segment) in caplog.text


def test_the_host_announces_itself_and_leaves(installation) -> None:
    host = ConsumerHost("host-2", on_death=lambda reason: None)
    host.start()
    wait_until(lambda: partitions_of("host-2") == 3)
    assert ServiceInstance.objects.get(service_id="host-2").is_alive
    host.stop()
    assert not ServiceInstance.objects.get(service_id="host-2").is_alive
    assert not services().filter(service_id="host-2").exists()


def test_samples_say_how_far_each_group_is(installation) -> None:
    published = publish(installation)
    assert publish_samples(runtime.provider(), "sampler") == 3
    reader = runtime.provider().reader()
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    events = [Event.FromString(record.data) for place in places for record in reader.read(place, 0, 10)]
    samples = {event.offset_sample.partition: event.offset_sample for event in events}
    assert samples[published.partition].end_offset == 1
    assert not samples[published.partition].HasField("committed_offset")
    assert {sample.queue_id for sample in samples.values()} == {str(installation.queue.id)}


def test_a_queue_without_a_handler_waits_and_the_others_go_on(installation, caplog) -> None:
    installation.queue.handler = "demo.rule_engin"
    installation.queue.save()
    host = ConsumerHost("host-3", on_death=lambda reason: None)
    host.start()
    wait_until(lambda: "did you mean 'demo.rule_engine'?" in caplog.text)
    assert not ConsumerStanding.objects.filter(service_id="host-3").exists()
    installation.queue.handler = "demo.rule_engine"
    installation.queue.save()
    wait_until(lambda: ConsumerStanding.objects.filter(service_id="host-3").count() == 3)
    host.stop()
