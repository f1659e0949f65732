"""Consumer groups over REST: who reads, how far each is, and setting one to another place."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import create_queue
from queueapi.models import AuditEntry
from queuecore.messages import QueueMessage
from queuecore.providers.base import QueueConsumer, TopicSpec
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

GROUPS = "/api/v1/groups"
FIRST = "tb_rule_engine_telemetry-consumer-0"
OTHER = "reports"
PLACE = ProviderPartition("telemetry.0", 0)
ORDERS = [TopicPartitionInfo("orders", number, use_internal_partition=True) for number in range(2)]

pytestmark = pytest.mark.usefixtures("each_provider")


@pytest.fixture(autouse=True)
def stored(each_provider, installation) -> None:
    """Five messages in the queue's first partition, of which its group has done three; and somebody else's group, that
    has done one of two."""
    provider = runtime.provider()
    provider.admin().create_topics([TopicSpec("orders", 2)])
    for info, count in ((installation.queue.partition_info(0), 5), (ORDERS[1], 2)):
        for _ in range(count):
            send_and_wait(provider.producer(), info, QueueMessage(uuid4(), b"x"), DEADLINE_S)
    provider.admin().alter_group_offsets(FIRST, {PLACE: 3})
    provider.admin().alter_group_offsets(OTHER, {ORDERS[1].place: 1})


@pytest.fixture
def reader(installation) -> Iterator[QueueConsumer]:
    """A member of the queue's group that holds the partition."""
    consumer = runtime.provider().consumer(FIRST, member_id="partition-0")
    consumer.subscribe([installation.queue.partition_info(0)])
    wait_until(lambda: consumer.poll(10))
    yield consumer
    consumer.stop()


def committed(group: str = FIRST) -> dict[ProviderPartition, int]:
    return dict(runtime.provider().admin().committed_offsets({group: None})[group])


def names(answer: Any) -> list[str]:
    return [row["name"] for row in answer.json()["results"]]


def test_groups_are_listed_with_their_queue_and_lag(admin_api, installation) -> None:
    first, other = sorted(admin_api.get(GROUPS).json()["results"], key=lambda row: row["name"] != FIRST)
    queue = installation.queue
    assert first == {
        "name": FIRST,
        "queue": {"id": str(queue.id), "name": "Telemetry", "tenant": str(queue.tenant_id)},
        "active": False,
        "member_count": 0,
        "partition_count": 1,
        "lag": 2,
    }
    assert (other["name"], other["queue"], other["lag"]) == (OTHER, None, 1)


def test_a_group_with_its_members_and_partitions(admin_api, reader) -> None:
    group = admin_api.get(f"{GROUPS}/{FIRST}").json()
    [member] = group["members"]
    assert (group["active"], member["partitions"]) == (True, ["telemetry.0[0]"])
    assert group["partitions"] == [
        {
            "topic": "telemetry.0",
            "partition": 0,
            "beginning": 0,
            "end": 5,
            "committed": 3,
            "lag": 2,
            "member": member["id"],
        }
    ]


def test_lists_are_narrowed_down(admin_api, reader) -> None:
    assert names(admin_api.get(GROUPS, {"active": "true"})) == [FIRST]
    assert names(admin_api.get(GROUPS, {"active": "false"})) == [OTHER]
    assert names(admin_api.get(GROUPS, {"queue": "TELEMETRY"})) == [FIRST]
    assert names(admin_api.get(GROUPS, {"text": "REP"})) == [OTHER]
    assert admin_api.get(GROUPS, {"active": "perhaps"}).status_code == 400


def test_pages_ask_the_database_once(admin_api, django_assert_num_queries) -> None:
    with django_assert_num_queries(2):  # the role of who asks, the queues
        first = admin_api.get(GROUPS, {"page_size": 1}).json()
    second = admin_api.get(first["next"]).json()
    assert [first["results"][0]["name"], second["results"][0]["name"]] == sorted([FIRST, OTHER])
    assert second["next"] is None


def test_with_its_topic_goes_what_a_group_had_committed(admin_api) -> None:
    runtime.provider().admin().delete_topics(["orders"])
    assert admin_api.get(f"{GROUPS}/{OTHER}").status_code == 404
    assert names(admin_api.get(GROUPS)) == [FIRST]


@pytest.mark.parametrize("name", ["nobody", "tb_rule_engine_telemetry-consumer-3", "a%00b"])
def test_a_group_there_is_not(admin_api, name) -> None:
    assert admin_api.get(f"{GROUPS}/{name}").status_code == 404
    assert admin_api.post(f"{GROUPS}/{name}/offsets", {"to": "earliest"}).status_code == 404


# --- setting offsets


def reset(api: Any, group: str = FIRST, query: str = "", **body: Any) -> Any:
    return api.post(f"{GROUPS}/{group}/offsets{query}", body)


@pytest.mark.parametrize(
    ("body", "offset", "skipped", "repeated"),
    [
        ({"to": "earliest"}, 0, 0, 3),
        ({"to": "latest"}, 5, 2, 0),
        ({"to": "last", "count": 1}, 4, 1, 0),
        ({"to": "offset", "offset": 1}, 1, 0, 2),
        ({"to": "time", "time": "2001-02-03T04:05Z"}, 0, 0, 3),
        ({"to": "time", "time": "2999-02-03T04:05+02:00"}, 5, 2, 0),
        ({"to": "ago", "ago": "PT1H"}, 0, 0, 3),
        ({"to": "ago", "ago": "P9999D"}, 0, 0, 3),
        ({"to": "shift", "count": -2}, 1, 0, 2),
    ],
)
def test_a_plan_shows_each_partition_before_and_after(admin_api, body, offset, skipped, repeated) -> None:
    answer = reset(admin_api, query="?dry_run=true", **body)
    assert answer.status_code == 200, answer.json()
    [move] = answer.json()["moves"]
    assert (move["topic"], move["committed"], move["offset"]) == ("telemetry.0", 3, offset)
    assert (move["skipped"], move["repeated"], move["changes"]) == (skipped, repeated, True)
    assert committed() == {PLACE: 3}
    assert not AuditEntry.objects.filter(action="reset_offsets").exists()


def test_a_reset_is_done_and_audited(admin_api) -> None:
    token = reset(admin_api, query="?dry_run=true", to="earliest").json()["token"]
    assert reset(admin_api, to="earliest", token=token).status_code == 200
    assert committed() == {PLACE: 0}
    [entry] = AuditEntry.objects.filter(action="reset_offsets")
    assert (entry.actor_name, entry.object_type, entry.object_id) == ("root", "group", FIRST)
    assert (entry.before["offsets"], entry.after["offsets"]) == ({"telemetry.0[0]": 3}, {"telemetry.0[0]": 0})


def test_what_changes_nothing_is_not_audited(admin_api) -> None:
    assert reset(admin_api, to="offset", offset=3).json()["moves"][0]["changes"] is False
    assert not AuditEntry.objects.filter(action="reset_offsets").exists()


def test_a_plan_that_does_not_hold_any_more_is_refused(admin_api) -> None:
    token = reset(admin_api, query="?dry_run=1", to="earliest").json()["token"]
    runtime.provider().admin().alter_group_offsets(FIRST, {PLACE: 4})
    answer = reset(admin_api, to="earliest", token=token)
    assert (answer.status_code, answer.json()["code"]) == (409, "plan_changed")
    assert committed() == {PLACE: 4}


def test_what_a_plan_of_ago_meant_is_done_by_its_time(admin_api) -> None:
    """So long before now is another time with every call; the plan says which it was of."""
    plan = reset(admin_api, query="?dry_run=true", to="ago", ago="PT1H").json()
    assert reset(admin_api, to="time", time=plan["time"], token=plan["token"]).status_code == 200
    assert committed() == {PLACE: 0}


def test_a_plan_tells_its_time_to_the_millisecond_or_none(admin_api) -> None:
    def time(**body: Any) -> str | None:
        return reset(admin_api, query="?dry_run=true", **body).json()["time"]

    assert time(to="time", time="2030-01-31T10:00:00.1239+02:00") == "2030-01-31T08:00:00.123000Z"
    assert time(to="time", time="9999-12-31T23:59:59.9999Z") == "9999-12-31T23:59:59.999000Z"
    assert time(to="ago", ago="P999999D") == "1970-01-01T00:00:00Z"
    assert time(to="earliest") is None


def test_a_token_is_of_a_time_and_not_of_ago(admin_api) -> None:
    token = reset(admin_api, query="?dry_run=true", to="ago", ago="PT1H").json()["token"]
    answer = reset(admin_api, to="ago", ago="PT1H", token=token)
    assert answer.status_code == 400
    assert "send that as `time`" in str(answer.json()["errors"]["token"])
    assert committed() == {PLACE: 3}


def test_a_group_that_reads_is_left_alone_and_its_readers_are_named(admin_api, reader) -> None:
    assert reset(admin_api, query="?dry_run=true", to="earliest").status_code == 200
    answer = reset(admin_api, to="earliest")
    assert (answer.status_code, answer.json()["code"]) == (409, "group_active")
    [member] = admin_api.get(f"{GROUPS}/{FIRST}").json()["members"]
    assert member["id"] in answer.json()["detail"]
    assert "stop its consumers" in answer.json()["detail"]
    assert committed() == {PLACE: 3}
    assert not AuditEntry.objects.filter(action="reset_offsets").exists()


def test_some_partitions_of_a_topic_alone(admin_api) -> None:
    body = {"to": "latest", "topic": "orders", "partitions": [1]}
    [move] = reset(admin_api, OTHER, **body).json()["moves"]
    assert (move["partition"], move["offset"]) == (1, 2)
    assert committed(OTHER) == {ORDERS[1].place: 2}


def test_a_queues_group_can_be_set_before_anybody_reads(admin_api, installation) -> None:
    queue = create_queue(
        SYSTEM, installation.tenant, name="Own", topic="own", handler="log", partitions=2, consumer_per_partition=False
    )
    group = f"tb_rule_engine_own-isolated-{installation.tenant.id}-consumer"
    assert len(reset(admin_api, group, to="latest").json()["moves"]) == 2
    assert committed(group) == {info.place: 0 for info in queue.partition_infos()}
    [alone] = reset(admin_api, f"{group}-1", to="latest").json()["moves"]
    assert alone["topic"].endswith(".1")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "to"),
        ({"to": "noon"}, "to"),
        ({"to": "offset"}, "offset"),
        ({"to": "offset", "offset": -1}, "offset"),
        ({"to": "offset", "offset": 2**63}, "offset"),
        ({"to": "earliest", "offset": 1}, "offset"),
        ({"to": "ago", "ago": "-PT1H"}, "ago"),
        ({"to": "last", "count": -1}, "count"),
        ({"to": "earliest", "topic": "orders", "partitions": []}, "partitions"),
    ],
)
def test_what_cannot_be_used_is_named(admin_api, body, field) -> None:
    answer = reset(admin_api, **body)
    assert answer.status_code == 400
    assert field in answer.json()["errors"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"to": "earliest", "topic": "nowhere"}, 404, "unknown_topic"),
        ({"to": "earliest", "topic": "orders", "partitions": [7]}, 404, "unknown_topic"),
        ({"to": "earliest", "partitions": [0]}, 400, "invalid_input"),
        ({"to": "shift", "count": 1, "topic": "orders"}, 400, "offset_out_of_range"),
    ],
)
def test_what_is_not_there_is_a_problem_with_a_code(admin_api, body, status, code) -> None:
    answer = reset(admin_api, **body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert committed() == {PLACE: 3}
