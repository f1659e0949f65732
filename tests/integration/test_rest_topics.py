"""Topics over REST: what the provider has, and whose it is."""

from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.messages import publish_message
from queueapi.actions.queues import create_queue
from queueapi.models import Queue
from queueapi.selectors import topics as selector
from queuecore.providers.base import TopicSpec

TOPICS = "/api/v1/topics"

on_each_provider = pytest.mark.usefixtures("each_provider")


@pytest.fixture
def own(installation) -> Queue:
    """A tenant's own queue, which remembers and shares its topic for dead letters with nobody."""
    return create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log", partitions=2)


@pytest.fixture
def others(installation) -> None:
    names = ["tb_core.notifications.core-1", "js_eval.responses.rule-1", "orders"]
    runtime.provider().admin().create_topics(TopicSpec(name) for name in names)


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.json()
    return [row["name"] for row in answer.json()["results"]]


@on_each_provider
def test_each_topic_says_what_it_is_for_and_whose_it_is(admin_api, installation, own, others) -> None:
    rows = {row["name"]: row for row in admin_api.get(TOPICS).json()["results"]}
    tenant = str(installation.tenant.id)
    assert {name: row["kind"] for name, row in rows.items()} == {
        "js_eval.responses.rule-1": "responses",
        "orders": "unknown",
        f"own.isolated.{tenant}.0": "queue",
        f"own.isolated.{tenant}.1": "queue",
        f"own.isolated.{tenant}.dlq": "dead_letters",
        "queue.metrics": "metrics",
        "tb_core.notifications.core-1": "notifications",
        "telemetry.0": "queue",
        "telemetry.1": "queue",
        "telemetry.2": "queue",
        "telemetry.dlq": "dead_letters",
    }
    mine = rows[f"own.isolated.{tenant}.1"]
    assert (mine["queues"], mine["tenant"]) == ([{"id": str(own.id), "name": "Own"}], tenant)
    assert (rows["orders"]["queues"], rows["orders"]["tenant"]) == ([], None)
    assert rows["queue.metrics"]["partitions"] == 4


@on_each_provider
def test_states_and_shared_letters_are_recognised(admin_api, installation) -> None:
    shared = {"handler": "log", "dlq_topic": "letters", "partitions": 1}
    first = create_queue(SYSTEM, installation.queue.tenant, name="A", topic="a", state_topic="a-state", **shared)
    second = create_queue(SYSTEM, installation.tenant, name="B", topic="b", **shared)
    state = admin_api.get(f"{TOPICS}/a-state.0").json()
    assert (state["kind"], state["queues"][0]["id"], state["cleanup_policy"]) == ("state", str(first.id), "compact")
    letters = admin_api.get(f"{TOPICS}/letters").json()
    assert [queue["id"] for queue in letters["queues"]] == [str(first.id), str(second.id)]
    assert letters["tenant"] is None


@on_each_provider
def test_a_topic_with_its_partitions(admin_api, installation) -> None:
    published = publish_message(installation.queue, installation.tenant, uuid4(), b"x" * 100)
    topic = admin_api.get(f"{TOPICS}/{published.topic}").json()
    assert (topic["messages"], topic["partitions"], topic["retention_ms"]) == (1, 1, 7 * 24 * 60 * 60 * 1000)
    assert (topic["beginning"], topic["end"]) == (0, 1)
    assert topic["size_bytes"] >= 100
    [partition] = topic["partition_list"]
    assert (partition["partition"], partition["beginning"], partition["end"]) == (0, 0, 1)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"kind": "queue", "queue": "telemetry"}, ["telemetry.0", "telemetry.1", "telemetry.2"]),
        ({"text": "RULE-"}, ["js_eval.responses.rule-1"]),
        ({"kind": "state"}, []),
    ],
)
def test_lists_are_narrowed_down(admin_api, others, query, found) -> None:
    assert names(admin_api.get(TOPICS, query)) == found


def test_lists_are_narrowed_down_to_a_tenant_or_a_queues_id(admin_api, installation, own) -> None:
    every = [f"own.isolated.{installation.tenant.id}.{end}" for end in ("0", "1", "dlq")]
    assert names(admin_api.get(TOPICS, {"tenant": str(installation.tenant.id)})) == every
    assert names(admin_api.get(TOPICS, {"queue": str(own.id)})) == every


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"kind": "nothing"}, 400),
        ({"tenant": "me"}, 400),
        ({"page_size": "0"}, 400),
        ({"page_size": "201"}, 400),
        ({"page_size": "many"}, 400),
        ({"cursor": "ä"}, 404),
        ({"text": "\0"}, 400),
    ],
)
def test_what_cannot_be_asked_is_a_problem(admin_api, query, status) -> None:
    answer = admin_api.get(TOPICS, query)
    assert (answer.status_code, answer["content-type"]) == (status, "application/problem+json")


@on_each_provider
@pytest.mark.parametrize("name", ["nowhere", "telemetry", "a%00b", "a b", "..", "x" * 300])
def test_a_topic_there_is_not(admin_api, name) -> None:
    assert admin_api.get(f"{TOPICS}/{name}").status_code == 404


@pytest.fixture
def asked(installation, monkeypatch) -> Counter[str]:
    """How often the provider is asked what."""
    counts: Counter[str] = Counter()
    admin = type(runtime.provider().admin())

    def count(name: str) -> None:
        original = getattr(admin, name)

        def counted(*args: Any) -> Any:
            counts[name] += 1
            return original(*args)

        monkeypatch.setattr(admin, name, counted)

    count("topics")
    count("topic_names")
    count("describe_topics")
    return counts


@on_each_provider
def test_pages_ask_once_for_their_topics_however_many_there_are(
    admin_api, others, own, asked, django_assert_num_queries
) -> None:
    # From then on it is known who asks.
    assert admin_api.get(f"{TOPICS}?page_size=4").status_code == 200
    seen, url = [], f"{TOPICS}?page_size=4"
    while url:
        asked.clear()
        with django_assert_num_queries(1):
            answer = admin_api.get(url)
        assert asked == {"topic_names": 1, "describe_topics": 1}
        assert len(names(answer)) <= 4
        seen += names(answer)
        url = answer.json()["next"]
    assert seen == names(admin_api.get(TOPICS))


def test_a_page_asks_for_no_more_names_than_it_has(admin_api, others, monkeypatch) -> None:
    told = []
    admin = type(runtime.provider().admin())
    names_of = admin.topic_names

    def noted(*args: Any) -> list[str]:
        told.append(names_of(*args))
        return told[-1]

    monkeypatch.setattr(admin, "topic_names", noted)
    assert len(names(admin_api.get(TOPICS, {"page_size": 2}))) == 2
    assert len(told[-1]) == 3, "one more tells that there is a next page"


@on_each_provider
def test_a_topic_that_goes_while_it_is_looked_at_is_left_out(admin_api, others, monkeypatch) -> None:
    listed = selector.list_topics

    def list_and_delete(*wanted):
        found = listed(*wanted)
        runtime.provider().admin().delete_topics(["orders"])
        return found

    monkeypatch.setattr("queueapi.rest.v1.topics.list_topics", list_and_delete)
    assert "orders" not in names(admin_api.get(TOPICS))
