"""Topics, groups and messages over REST, on a real Kafka."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.models import Queue
from queueapi.selectors.message_scans import MessageQuery
from queueapi.selectors.message_tails import MessageTail
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import wait_until


@pytest.fixture
def queue(tmp_path: Path, settings, transactional_db, kafka_service: KafkaService) -> Iterator[Queue]:
    tree = settings.SWITCHYARD.queue
    on_kafka = replace(tree, type="kafka", kafka=replace(tree.kafka, bootstrap_servers=kafka_service.bootstrap_servers))
    settings.SWITCHYARD = replace(settings.SWITCHYARD, data_dir=tmp_path, queue=on_kafka)
    runtime.close_provider()
    # The broker outlives the test: each has topics and groups of its own.
    name = f"browsed-{uuid4().hex}"
    yield create_queue(SYSTEM, ensure_system_tenant(), name=name, topic=name, handler="log", partitions=2)
    runtime.close_provider()


def test_publish_browse_follow_and_reset(queue: Queue) -> None:
    api = APIClient()
    api.force_authenticate(User.objects.create_superuser("root", password="secret"))
    url = f"/api/v1/queues/{queue.name}/messages"
    tenant, entity = str(create_tenant(SYSTEM, "Greenhouse").id), str(uuid4())
    tail = MessageTail(queue, [0, 1], MessageQuery())

    messages = [{"tenant": tenant, "entity": entity, "payload": number} for number in range(10)]
    sent = api.post(f"{url}/batch", {"messages": messages}).json()
    assert (sent["stored"], sent["failed"]) == (10, 0)
    partition = sent["results"][0]["partition"]

    page = api.get(url, {"limit": 4}).json()
    seen = [one["payload"] for one in page["results"]]
    while page["next"]:
        page = api.get(page["next"]).json()
        seen += [one["payload"] for one in page["results"]]
    assert seen == list(reversed(range(10)))
    oldest = api.get(url, {"order": "oldest", "entity": entity, "from": "2001-01-01T00:00Z"}).json()
    assert [one["payload"] for one in oldest["results"]] == list(range(10))
    assert api.get(f"{url}/{partition}/9").json()["payload"] == 9
    assert api.get(f"{url}/{partition}/10").status_code == 404
    assert [record.data for _, record in tail.look(3).found] == [b"7", b"8", b"9"]
    tail.close()

    topic = f"{queue.topic}.{partition}"
    listed = api.get("/api/v1/topics", {"queue": queue.name, "kind": "queue"}).json()["results"]
    assert {row["name"]: row["messages"] for row in listed}[topic] == 10

    group = f"tb_rule_engine_{queue.name}-consumer-{partition}"
    consumer = runtime.provider().consumer(group)
    consumer.subscribe([queue.partition_info(partition)])
    wait_until(lambda: consumer.poll(100))
    consumer.commit()
    reset = {"to": "offset", "offset": 4}
    assert api.post(f"/api/v1/groups/{group}/offsets", reset).json()["code"] == "group_active"
    consumer.stop()
    wait_until(lambda: not api.get(f"/api/v1/groups/{group}").json()["active"])
    [move] = api.post(f"/api/v1/groups/{group}/offsets", reset).json()["moves"]
    assert (move["committed"], move["offset"], move["repeated"]) == (10, 4, 6)
    [partition_row] = api.get(f"/api/v1/groups/{group}").json()["partitions"]
    assert (partition_row["committed"], partition_row["end"], partition_row["lag"]) == (4, 10, 6)
