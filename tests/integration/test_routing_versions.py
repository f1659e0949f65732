"""Where messages go, from the rows of queues to every producer."""

import json
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM
from queueapi.actions.messages import publish_message
from queueapi.actions.provisioning import provision_queue
from queueapi.actions.queues import create_queue
from queueapi.addressing import addresses, close_addresses
from queueapi.cluster.databases import cluster_database
from queueapi.cluster.models import RoutingAcknowledgement
from queueapi.cluster.store import DatabaseStore
from queueapi.errors import InvalidInput
from queueapi.identity import service_id
from queueapi.models import Queue
from queueapi.queue_addresses import QueueAddresses
from queueapi.routing import publish_routing, routing_table
from queuecore.cluster.routing_feed import RoutingFeed
from queuecore.errors import StoreUnavailable, UnknownQueue
from queuecore.messages import TENANT_ID, QueueMessage
from queuecore.routing import QueueKey, RoutedQueue
from queuecore.sending import Addressed
from queuecore.testing.waiting import wait_until
from queuecore.topics import SYSTEM_TENANT, ServiceType, TopicPartitionInfo
from tests.integration.queue_kit import consume, isolated
from workers.tasks import publish_routing_task

ROOT = Path(__file__).parents[2]
RE = ServiceType.TB_RULE_ENGINE

# A process that is a producer until its input ends, and says where messages to each queue that it reads would go.
PRODUCER = """
import os, sys, django
from django.conf import settings
if place := os.environ.get("TEST_CLUSTER"):
    settings.DATABASES["cluster"]["NAME"] = place
django.setup()
from queueapi.addressing import addresses
from queuecore.topics import SYSTEM_TENANT
addresses()
for line in sys.stdin:
    print(addresses().resolve(SYSTEM_TENANT, line.strip(), b"device"), flush=True)
"""


@pytest.fixture
def store() -> DatabaseStore:
    return DatabaseStore()


def new_queue(installation, name: str, tenant=None, **options) -> Queue:
    tenant = tenant or installation.queue.tenant
    return create_queue(SYSTEM, tenant, name=name, topic=name.lower(), handler="log", **options)


def unpublished_queue(installation, name: str, **options) -> Queue:
    """As whoever dies between the row and its publication leaves it."""
    given = {"tenant": installation.queue.tenant, "topic": name.lower(), "handler": "log", "partitions": 1, **options}
    return Queue.objects.create(name=name, **given)


def test_a_created_queue_is_a_new_version_of_the_whole(database, installation, store) -> None:
    before = store.routing_version()
    new_queue(installation, "Orders", partitions=2)
    new_queue(installation, "Own", installation.tenant, partitions=4)
    table = store.routing()
    assert table.version == before + 2
    assert table.queues == {
        QueueKey(RE, "Telemetry"): RoutedQueue("telemetry", 3),
        QueueKey(RE, "Orders"): RoutedQueue("orders", 2),
        QueueKey(RE, "Own", installation.tenant.id): RoutedQueue("own", 4),
    }
    assert table.isolated == {installation.tenant.id}
    assert publish_routing() == table.version


def test_what_is_rolled_back_is_published_by_nobody(installation, store) -> None:
    before = store.routing_version()
    with transaction.atomic():
        new_queue(installation, "Orders")
        transaction.set_rollback(True)
    assert (publish_routing(), store.routing_version()) == (before, before)


def test_what_was_not_published_is_mended_by_the_sweeper(installation, store) -> None:
    unpublished_queue(installation, "Orders")
    assert QueueKey(RE, "Orders") not in store.routing().queues
    publish_routing_task()
    assert QueueKey(RE, "Orders") in store.routing().queues


def test_what_was_not_published_is_mended_by_who_sends_to_it(database, installation, store) -> None:
    queue = unpublished_queue(installation, "Orders")
    provision_queue(queue)
    assert publish_message(queue, installation.tenant, uuid4(), b"").partition == 0
    assert QueueKey(RE, "Orders") in store.routing().queues


def test_that_producers_cannot_be_told_keeps_no_queue_from_being_created(installation, monkeypatch, caplog) -> None:
    def fail(*_: object) -> int:
        raise StoreUnavailable("the store cannot be reached; mend that")

    monkeypatch.setattr(DatabaseStore, "publish_routing_after", fail)
    assert new_queue(installation, "Orders").pk
    assert "producers do not learn yet where messages go: the store cannot be reached" in caplog.text


def test_whoever_creates_queues_at_once_leaves_all_of_them_in_the_latest_version(installation, store) -> None:
    """And none that was there is ever missing: a table is never followed by an older one."""
    together = threading.Barrier(4)

    def create(number: int) -> None:
        together.wait(60)
        try:
            for turn in range(3):
                unpublished_queue(installation, f"queue-{number}-{turn}")
                publish_routing()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, range(4)))
    tables = [store.routing(version) for version in range(1, store.routing_version() + 1)]
    seen = [frozenset(key.queue for key in table.queues) for table in tables]
    assert all(before < after for before, after in pairwise(seen))
    assert len(seen[-1]) == 1 + 12


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"service_type": "TB_CORE"}, "cannot be a tenant's own; only rule-engine queues can"),
        ({"service_type": "later"}, "there is no service type 'later'"),
        ({"topic": "tele metry"}, "may hold only ASCII"),
        ({"name": "ORDERS", "tenant": None}, "is taken for that of queue Orders"),
        ({"topic": "a_b", "tenant": None}, "is taken for that of queue Orders"),
    ],
)
def test_a_row_that_no_table_can_hold_is_that_queues_trouble_alone(installation, fields, why, caplog) -> None:
    system = installation.queue.tenant
    good = Queue(tenant=system, name="Orders", topic="a.b", partitions=1)
    given = {"tenant": installation.tenant, "name": "Bad", "topic": "bad", "partitions": 1, **fields}
    bad = Queue(**given | {"tenant": given["tenant"] or system})
    for _ in range(2):
        table = routing_table([installation.queue, good, bad])
        assert {key.queue for key in table.queues} == {"Telemetry", "Orders"}
    [said] = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert said.startswith(f"nothing can be sent to queue {bad.name}: ")
    assert why in said


def test_a_tenants_own_queue_of_another_service_is_refused(installation) -> None:
    with pytest.raises(InvalidInput, match=r"^service_type: .*only rule-engine queues can; leave the tenant out"):
        new_queue(installation, "Own", installation.tenant, service_type="TB_CORE")
    assert not Queue.objects.filter(name="Own").exists()


def test_a_new_queue_is_sent_to_at_once(database, installation) -> None:
    known = addresses()
    assert known.resolve(SYSTEM_TENANT, "telemetry", b"device").topic == "telemetry"
    queue = new_queue(installation, "Orders", partitions=2)
    assert publish_message(queue, installation.tenant, uuid4(), b"").offset == 0
    assert known.resolve(SYSTEM_TENANT, "ORDERS", None) in queue.partition_infos()
    with pytest.raises(UnknownQueue, match="did you mean 'orders'"):
        known.resolve(installation.tenant.id, "Order", None)


def test_a_tenants_queue_is_never_taken_for_the_systems(installation) -> None:
    known = QueueAddresses(routing_table([installation.queue]))
    assert known.resolve(installation.tenant.id, "Telemetry", b"device").tenant_id == SYSTEM_TENANT
    with pytest.raises(UnknownQueue, match="there are: none"):
        known.resolve_exactly(installation.tenant.id, "Telemetry", b"device")
    with pytest.raises(UnknownQueue):
        known.resolve_exactly(installation.tenant.id, "tb_core.notifications.core-1", b"device")


class TestPosting:
    """Where messages go is decided when they are sent, whenever they were addressed."""

    ENTITY = uuid4()

    def addressed(self, installation, known: QueueAddresses, tenant: object, key: object = ENTITY) -> Addressed:
        headers = {TENANT_ID: str(tenant).encode()}
        info = known.resolve_exactly(SYSTEM_TENANT, installation.queue.name, key)
        return Addressed(info, QueueMessage(key, b"x", headers))

    def test_an_isolated_tenants_messages_go_to_its_own_queue(self, installation) -> None:
        known = QueueAddresses(routing_table([installation.queue]))
        of_tenant = self.addressed(installation, known, installation.tenant.id)
        of_other, of_nobody = self.addressed(installation, known, uuid4()), self.addressed(installation, known, "?")
        name, topic = installation.queue.name, installation.queue.topic
        own = Queue(tenant=installation.tenant, name=name, topic=topic, partitions=5)
        known.use(replace(routing_table([installation.queue, own]), version=1))
        with known.posting() as posting:
            assert posting.where(of_tenant).info == known.resolve_exactly(own.tenant_id, name, self.ENTITY)
            assert posting.where(of_tenant).info.full_topic_name.startswith(f"{topic}.isolated.{own.tenant_id}.")
            assert [posting.where(one) for one in (of_other, of_nobody)] == [of_other, of_nobody]

    def test_a_queue_with_other_partitions_has_each_entity_in_one(self, installation) -> None:
        known = QueueAddresses(routing_table([installation.queue]))
        tenant = installation.tenant.id
        keyed = [self.addressed(installation, known, tenant, uuid4()) for _ in range(50)]
        keyless = [self.addressed(installation, known, tenant, None) for _ in range(9)]
        installation.queue.partitions += 4
        known.use(replace(routing_table([installation.queue]), version=1))
        wanted = [known.resolve_exactly(SYSTEM_TENANT, installation.queue.name, one.message.key) for one in keyed]
        with known.posting() as posting:
            assert [posting.where(one).info for one in keyed] == wanted
            assert [posting.where(one) for one in keyless] == keyless

    def test_what_goes_to_no_queue_goes_where_it_was_addressed_to(self, installation) -> None:
        known = QueueAddresses(routing_table([installation.queue]))
        topic = installation.queue.topic
        others = [
            TopicPartitionInfo("tb_core.notifications.core-1"),
            TopicPartitionInfo(f"{topic}.dlq", 2, use_internal_partition=True),
            TopicPartitionInfo(topic, 2, use_internal_partition=True),
        ]
        with known.posting() as posting:
            for info in others:
                addressed = Addressed(info, QueueMessage(self.ENTITY, b"x"))
                assert posting.where(addressed) is addressed

    def test_the_version_is_in_use_until_the_provider_has_answered(self, installation) -> None:
        known = QueueAddresses(routing_table([installation.queue]))
        stored: Future[None] = Future()
        with known.posting() as posting:
            posting.sent(stored)
        known.use(replace(routing_table([installation.queue]), version=1))
        assert not known.is_over(1)
        stored.set_result(None)
        assert known.is_over(1)


def test_what_was_addressed_to_a_queue_that_has_gone_goes_where_its_name_leads(installation) -> None:
    tenant, shared = installation.tenant, installation.queue
    own = Queue(tenant=tenant, name=shared.name, topic=shared.topic, service_type=shared.service_type, partitions=2)
    known = QueueAddresses(routing_table([shared, own]))
    addressed = Addressed(known.resolve(tenant.pk, shared.name, uuid4()), QueueMessage(uuid4(), b"1"))
    assert addressed.info.tenant_id == tenant.pk
    known.use(replace(routing_table([shared]), version=1))
    with known.posting() as posting:
        assert posting.where(addressed).info.tenant_id == SYSTEM_TENANT


def test_what_is_published_for_an_isolated_tenant_is_stored_in_its_queue(database, installation, store) -> None:
    tenant, entity = installation.tenant, uuid4()
    assert publish_message(installation.queue, tenant, entity, b"1").topic.startswith(f"{installation.queue.topic}.")
    consume(installation.queue)
    own = isolated(tenant, installation.queue, partitions=2)
    wait_until(lambda: addresses().version == store.routing_version())
    published = publish_message(installation.queue, tenant, entity, b"2")
    assert published.topic == f"{own.topic}.isolated.{tenant.id}.{published.partition}"


def test_this_process_is_one_producer_until_it_is_closed(database, installation, store) -> None:
    assert store.acknowledgements() == {}
    assert addresses() is addresses()
    wait_until(lambda: store.acknowledgements() == {service_id(): store.routing_version()})
    close_addresses()
    assert store.acknowledgements() == {}
    assert addresses().resolve(SYSTEM_TENANT, "Telemetry", None)


def test_a_forked_process_is_a_producer_of_its_own(installation) -> None:
    parent = addresses()
    assert parent.resolve(SYSTEM_TENANT, "Telemetry", None)
    done = os.fork()
    if done == 0:
        from queueapi import addressing

        os._exit(0 if addressing._open is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(done, 0)[1]) == 0
    assert addresses() is parent


def test_who_sends_while_the_store_was_never_there_is_told(installation, monkeypatch) -> None:
    def fail(*_: object) -> int:
        raise StoreUnavailable("the store cannot be reached; mend that")

    monkeypatch.setattr(DatabaseStore, "acknowledge", fail)
    monkeypatch.setattr(RoutingFeed.wait_ready, "__defaults__", (0.05,))
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        publish_message(installation.queue, installation.tenant, uuid4(), b"")


def _environment(database: str) -> dict[str, str]:
    """Of a process that uses the same databases as this one."""
    if database == "postgresql":
        settings = connections["default"].settings_dict
        place = f"{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
        url = f"postgres://{settings['USER']}:{settings['PASSWORD']}@{place}"
        return {"SWITCHYARD_DATABASE_URL": url}
    return {"TEST_CLUSTER": str(connections[cluster_database()].settings_dict["NAME"])}


def test_a_new_version_reaches_producers_of_other_processes(database, installation, store) -> None:
    environment = {
        **os.environ,
        **_environment(database),
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "SWITCHYARD_DATA_DIR": str(installation.folder),
    }
    addresses()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", PRODUCER], cwd=ROOT, env=environment, **pipes) as other:
        wait_until(lambda: len(store.acknowledgements()) == 2)
        new_queue(installation, "Orders", partitions=1)
        version = store.routing_version()
        wait_until(lambda: not store.yet_to_acknowledge(version))
        assert set(store.acknowledgements().values()) == {version}
        answer, _ = other.communicate("Orders\n", timeout=60)
        assert (answer, other.returncode) == ("orders.0\n", 0)
    assert store.acknowledgements().keys() == {service_id()}


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


def test_rest_tells_the_version_and_who_lags(database, api, store) -> None:
    store.acknowledge("slow", 0, 60)
    store.acknowledge("quick", store.routing_version(), 60)
    store.acknowledge("gone", 0, -1)
    answer = api.get("/api/v1/routing")
    assert answer.status_code == 200
    told = json.loads(answer.content)
    assert (told["version"], told["lagging"]) == (store.routing_version(), ["slow"])
    assert told["published_at"] <= timezone.now().isoformat()
    assert [(one["producer_id"], one["version"]) for one in told["producers"]] == [
        ("quick", store.routing_version()),
        ("slow", 0),
    ]
    assert told["producers"][0]["acknowledged_at"] < told["producers"][0]["lease_expires_at"]
    assert api.post("/api/v1/routing").status_code == 405


def test_rest_tells_that_nothing_was_published(transactional_db) -> None:
    client = APIClient()
    assert client.get("/api/v1/routing").status_code in (401, 403)
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    told = client.get("/api/v1/routing").json()
    assert told == {"version": 0, "published_at": None, "producers": [], "lagging": []}


def test_whoever_comes_clears_away_who_has_gone(installation, store) -> None:
    store.acknowledge("gone", 0, -1)
    store.acknowledge("new", 0, 60)
    assert list(RoutingAcknowledgement.objects.values_list("producer_id", flat=True)) == ["new"]
