"""Following a queue's messages over REST: what comes, bounded, until the client goes or the time is over."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from queueapi import runtime
from queueapi.actions.messages import publish_message
from queueapi.rest import tailing
from queueapi.selectors.message_scans import MessageQuery
from queueapi.selectors.message_tails import MessageTail
from queuecore.errors import UnknownTopic
from queuecore.messages import QueueMessage
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until

TAIL = "/api/v1/queues/telemetry/messages/tail"


def put(installation, partition: int, *payloads: bytes, key: Any = None) -> None:
    info = installation.queue.partition_info(partition)
    for payload in payloads:
        send_and_wait(runtime.provider().producer(), info, QueueMessage(key or uuid4(), payload), DEADLINE_S)


def tail_of(installation, **query: Any) -> MessageTail:
    return MessageTail(installation.queue, [0, 1, 2], MessageQuery(**query))


# --- what one look finds


@pytest.mark.usefixtures("each_provider")
def test_only_what_comes_afterwards_is_found_and_once(installation) -> None:
    put(installation, 0, b"before")
    tail = tail_of(installation)
    assert tail.look(10).found == []
    put(installation, 0, b"a")
    put(installation, 2, b"b")
    looked = tail.look(10)
    assert {(partition, record.data) for partition, record in looked.found} == {(0, b"a"), (2, b"b")}
    assert looked.skipped == 0
    assert tail.look(10).found == []
    tail.close()


def test_only_those_of_the_entity(installation) -> None:
    mine = uuid4()
    tail = tail_of(installation, entity=mine)
    put(installation, 0, b"other")
    put(installation, 0, b"mine", key=mine)
    assert [record.data for _, record in tail.look(10).found] == [b"mine"]
    tail.close()


def test_of_more_than_may_be_shown_the_newest_are(installation) -> None:
    tail = tail_of(installation)
    put(installation, 0, *[b"%d" % number for number in range(10)])
    looked = tail.look(3)
    assert [record.data for _, record in looked.found] == [b"7", b"8", b"9"]
    assert looked.skipped == 7
    tail.close()


def test_a_flood_is_passed_over_and_counted(installation) -> None:
    tail = tail_of(installation)
    put(installation, 0, *[b"x" * 900_000] * 8)
    looked = tail.look(500)
    # So many of them are read, no more: what comes next is not behind them.
    assert len(looked.found) + looked.skipped == 8
    put(installation, 0, b"next")
    assert [record.data for _, record in tail.look(500).found] == [b"next"]
    tail.close()


def test_retention_may_be_faster(installation) -> None:
    tail = tail_of(installation)
    put(installation, 0, b"0", b"1")
    runtime.provider().admin().delete_records({installation.queue.partition_info(0).place: 2})
    assert tail.look(10).found == []
    put(installation, 0, b"2")
    assert [record.data for _, record in tail.look(10).found] == [b"2"]
    tail.close()


# --- the stream


def stream(api, then: Callable[[AsyncIterator[bytes]], Awaitable[Any]], **query: Any) -> Any:
    """What `then` makes of the events of a tail; it may leave before the end."""
    response = api.get(TAIL, query, headers={"accept": "text/event-stream"})
    assert response.status_code == 200
    assert response["content-type"] == "text/event-stream"
    assert response["cache-control"] == "no-store"

    async def read() -> Any:
        events = aiter(response)
        try:
            return await then(events)
        finally:
            await events.aclose()

    try:
        return asyncio.run(read())
    finally:
        response.close()


def parsed(event: bytes) -> dict[str, Any]:
    fields = dict(line.split(": ", 1) for line in event.decode().strip().splitlines())
    return {**fields, "data": json.loads(fields["data"])}


def test_messages_are_events(admin_api, installation) -> None:
    async def publish_and_wait(events: AsyncIterator[bytes]) -> dict[str, Any]:
        assert await anext(events) == b": following\n\n"
        await asyncio.to_thread(put, installation, 1, b'{"a": "line\\nbreak"}')
        return parsed(await anext(events))

    event = stream(admin_api, publish_and_wait)
    assert (event["event"], event["id"]) == ("message", "1:0")
    assert (event["data"]["partition"], event["data"]["payload"]) == (1, {"a": "line\nbreak"})
    assert runtime.provider().admin().groups() == {}


def test_a_stream_ends_by_itself_and_says_so(admin_api) -> None:
    async def wait(events: AsyncIterator[bytes]) -> list[bytes]:
        return [event async for event in events]

    *_, last = stream(admin_api, wait, seconds=1)
    assert parsed(last)["event"] == "end"


def test_silence_is_broken_by_heartbeats(admin_api, monkeypatch) -> None:
    monkeypatch.setattr(tailing, "_HEARTBEAT_S", 0)

    async def second(events: AsyncIterator[bytes]) -> bytes:
        await anext(events)
        return await anext(events)

    assert stream(admin_api, second) == b": heartbeat\n\n"


def test_what_goes_wrong_is_an_event(admin_api) -> None:
    async def second(events: AsyncIterator[bytes]) -> dict[str, Any]:
        await anext(events)
        await asyncio.to_thread(runtime.provider().admin().delete_topics, ["telemetry.0"])
        return parsed(await anext(events))

    event = stream(admin_api, second)
    assert (event["event"], event["data"]["code"]) == ("error", UnknownTopic.code)


def test_so_many_may_follow_and_who_goes_makes_room(admin_api, monkeypatch) -> None:
    monkeypatch.setattr(tailing, "_free", tailing.threading.BoundedSemaphore(1))
    first = admin_api.get(TAIL)
    refused = admin_api.get(TAIL, headers={"accept": "text/event-stream"})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_tails")
    assert refused["content-type"] == "application/problem+json"
    first.close()
    first.close()

    async def leave(events: AsyncIterator[bytes]) -> None:
        await anext(events)

    stream(admin_api, leave)
    wait_until(lambda: tailing._free.acquire(blocking=False))
    tailing._free.release()


@pytest.mark.parametrize("query", [{"seconds": 0}, {"seconds": 601}, {"rate": 0}, {"partition": 3}, {"as": "pictures"}])
def test_what_cannot_be_asked_is_a_problem(admin_api, query) -> None:
    answer = admin_api.get(TAIL, query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_publishing_is_seen_as_published(admin_api, installation) -> None:
    async def publish_and_wait(events: AsyncIterator[bytes]) -> dict[str, Any]:
        await anext(events)
        queue, tenant = installation.queue, installation.tenant
        published = await asyncio.to_thread(publish_message, queue, tenant, uuid4(), b"x")
        event = parsed(await anext(events))
        assert event["id"] == f"{published.partition}:{published.offset}"
        return event

    event = stream(admin_api, publish_and_wait, tenant=str(installation.tenant.id))
    assert event["data"]["tenant"] == str(installation.tenant.id)
