"""Processes of an installation report what they consume and publish, and show it to Prometheus."""

import logging
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from console.management.commands.up import _metrics_address
from queueapi import reporting, runtime
from queueapi.actions.message_batches import OutgoingMessage, publish_batch
from queueapi.actions.messages import publish_message
from queueapi.config import config
from queueapi.identity import service_id
from queueapi.supervisor.children import children
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event
from queuecore.testing.services.ports import free_port
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition
from workers.host import ConsumerHost

SELDOM_S = 3_600


@pytest.fixture
def reported(installation, settings) -> Iterator[None]:
    """What is reported is so at the end."""
    settings.SWITCHYARD = replace(settings.SWITCHYARD, metrics_interval_s=SELDOM_S)
    yield
    runtime.close_provider()


@pytest.fixture
def listen(installation, settings) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    settings.SWITCHYARD = replace(settings.SWITCHYARD, metrics_listen=address)
    yield address
    runtime.close_provider()


def events() -> list[Event]:
    reader = runtime.provider().reader()
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    return [Event.FromString(record.data) for place in places for record in reader.read(place, 0, 100)]


def shown(listen: str) -> str:
    with urllib.request.urlopen(f"http://{listen}/metrics", timeout=30) as answer:
        return str(answer.read(), "utf-8")


def publish(installation, payload: bytes = b'{"sensor": 1, "temperature": 20}') -> None:
    publish_message(installation.queue, installation.tenant, uuid4(), payload)


def test_what_is_published_is_reported_by_its_tenant(reported, installation) -> None:
    publish(installation, b"12345")
    publish_batch(installation.queue, [OutgoingMessage(installation.tenant.id, uuid4(), b"123") for _ in range(4)])
    reporting.close_reporting()
    told = events()
    assert {event.service_id for event in told} == {service_id()}
    samples = [event.sent_sample for event in told]
    assert {one.topic.rpartition(".")[0] for one in samples} == {"telemetry"}
    assert (sum(one.sent for one in samples), sum(one.sent_bytes for one in samples)) == (5, 17)
    assert {tenant.tenant_id for one in samples for tenant in one.tenants} == {str(installation.tenant.id)}


def test_what_hosts_consume_is_reported_by_queue_and_tenant(reported, installation) -> None:
    for _ in range(3):
        publish(installation)
    host = ConsumerHost("host-1", on_death=pytest.fail)
    host.start()
    wait_until(lambda: sum(one.counts.handled for one in host._reporting.recorder.consumed) == 3)
    host.stop()
    told = [event for event in events() if event.HasField("consumed_sample")]
    assert {event.service_id for event in told} == {"host-1"}
    samples = [event.consumed_sample for event in told]
    assert {one.queue_id for one in samples} == {str(installation.queue.id)}
    assert sum(one.handled for one in samples) == 3
    [tenant] = {tenant.tenant_id for one in samples for tenant in one.tenants}
    assert tenant == str(installation.tenant.id)


def test_prometheus_sees_what_a_host_consumes_and_the_process_publishes(listen, installation) -> None:
    host = ConsumerHost("host-1", on_death=pytest.fail)
    host.start()
    publish(installation)
    wait_until(lambda: sum(one.counts.handled for one in host._reporting.recorder.consumed) == 1)
    told = shown(listen)
    host.stop()
    assert 'queue_consumer_polled_total{group="' in told
    assert 'queue="Telemetry"' in told
    assert "queue_processing_time_seconds_bucket{" in told
    assert 'queue_producer_sent_total{partition="0",topic="telemetry.' in told
    with pytest.raises(OSError, match="refused"):
        shown(listen)


def test_a_web_server_is_found_before_it_has_published(listen) -> None:
    reporting.show_web_server()
    assert shown(listen) == shown(listen)
    reporting.close_reporting()


def test_several_web_servers_cannot_share_an_address(listen, settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, web_workers=2)
    reporting.show_web_server()
    with pytest.raises(OSError, match="refused"):
        shown(listen)
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "one alone of 2 web server processes could listen there" in warning


def test_it_can_be_switched_off(installation) -> None:
    assert config().metrics_interval_s == 0
    publish(installation)
    runtime.close_provider()
    assert events() == []


def test_a_topic_that_somebody_removed_is_there_again(reported, installation) -> None:
    runtime.provider().admin().delete_topics([METRICS_TOPIC])
    publish(installation)
    reporting.close_reporting()
    assert sum(event.sent_sample.sent for event in events()) == 1


def test_each_process_of_up_has_an_address_of_its_own(settings) -> None:
    current = replace(settings.SWITCHYARD, metrics_listen="127.0.0.1:9464")
    addresses = {spec.name: _metrics_address(spec, current) for spec in children(demo=True)}
    assert {name: address.get("SWITCHYARD_METRICS_LISTEN") for name, address in addresses.items()} == {
        "web": "127.0.0.1:9465",
        "consumer": "127.0.0.1:9466",
        "consumer-2": "127.0.0.1:9467",
        "tasks": None,
        "spark": None,
        "beat": None,
        "core-api": None,
        "traffic": "127.0.0.1:9464",
    }  # fmt: skip
    assert _metrics_address(next(children()), settings.SWITCHYARD) == {}
