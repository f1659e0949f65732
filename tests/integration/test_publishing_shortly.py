"""Publishing by the short way: what it answers is what the long way answers, and what it cannot, that one does."""

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from console.publishing import PublishingFirst
from console.serving import ThreadKeepingHandler
from queueapi.access.tokens import TOKENS
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queue_ends import drain_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.tenant_removal import delete_tenant
from queueapi.actions.tenant_states import suspend_tenant
from queueapi.actions.tenants import change_tenant, create_tenant
from queueapi.choices import Role
from queueapi.models import ApiToken
from queueapi.rest.conventions import rates
from queueapi.rest.short_way import Asked, answer_shortly, answer_together
from tests.integration.queue_kit import isolated
from tests.people import bearer, person, token_of
from tests.rest_kit import World, messages_in

MESSAGES = "/api/v1/queues/telemetry/messages"
ONCE = ("offset", "timestamp_ms")


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    TOKENS.forget()
    yield
    TOKENS.forget()


@pytest.fixture
def secret(installation) -> str:
    return token_of(User.objects.create_superuser("root"), ["messages:write", "messages:read", "queues:read"])[1]


def one(installation, **fields: Any) -> dict[str, Any]:
    return {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": {"a": 1}, **fields}


def shortly(secret: str, body: Any, queue: str = "telemetry", *, is_batch: bool = False) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answer_shortly(Asked(queue, is_batch, secret, None, raw))


def at_length(secret: str, body: Any, path: str = MESSAGES) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return bearer(secret).generic("POST", path, raw, "application/json")


def told(answer: Any) -> Any:
    """Without what differs from message to message."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(each) for name, each in value.items() if name not in (*ONCE, "request_id")}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return answer.status_code, answer["Content-Type"], plain(json.loads(answer.content))


def stored_payloads(api: APIClient) -> list[bytes]:
    rows = api.get(f"{MESSAGES}?order=oldest&as=hex&preview_bytes=10000").json()["results"]
    return sorted(bytes.fromhex(row["payload"]) for row in rows)


@pytest.mark.parametrize("payload", [None, 0, "x", [], {"a": [1, {"b": "ü"}]}, {"long": "x" * 5000}])
def test_one_message_is_stored_and_answered_as_by_the_long_way(installation, secret, payload) -> None:
    message = one(installation, payload=payload)
    short, long = shortly(secret, message), at_length(secret, message)
    assert told(short) == told(long)
    assert json.loads(short.content)["offset"] + 1 == long.json()["offset"]
    assert short["X-Request-Id"]
    first, second = stored_payloads(bearer(secret))
    assert first == second
    assert json.loads(first) == payload


def test_many_are_stored_and_answered_as_by_the_long_way(installation, secret) -> None:
    entity = str(uuid4())
    raw = {name: value for name, value in one(installation).items() if name != "payload"}
    messages = [one(installation, entity=entity, payload=number) for number in range(3)]
    messages.append({**raw, "payload_base64": base64.b64encode(b"\0raw").decode()})
    short = shortly(secret, {"messages": messages}, is_batch=True)
    long = bearer(secret).post(f"{MESSAGES}/batch", {"messages": messages})
    assert told(short) == told(long)
    offsets = [result["offset"] for result in json.loads(short.content)["results"][:3]]
    assert offsets == sorted(offsets)
    assert stored_payloads(bearer(secret)) == sorted([b"0", b"1", b"2", b"\0raw"] * 2)


def test_json_is_stored_as_it_was_sent(installation, secret) -> None:
    text = b'{"b":1.50,  "a":"\\u00e9"}'
    body = json.dumps(one(installation, payload=0)).encode().replace(b'"payload": 0', b'"payload": ' + text)
    assert shortly(secret, body).status_code == 201
    assert at_length(secret, body).status_code == 201
    assert stored_payloads(bearer(secret)) == [text, text]


def unusual(message: dict[str, Any]) -> dict[str, Any]:
    """Bodies that the short way does not take."""
    deep: Any = 0
    for _ in range(100):
        deep = [deep]
    without = {name: value for name, value in message.items() if name != "payload"}
    return {
        "no JSON": b"{",
        "no text": json.dumps(message).encode().replace(b'"a"', b'"\xff"'),
        "not a number": b'{"payload": NaN, ' + json.dumps(without).encode()[1:],
        "no object": [],
        "nothing": {},
        "a field too many": {**message, "colour": "red"},
        "no payload": without,
        "two payloads": {**message, "payload_base64": ""},
        "no base64": {**without, "payload_base64": "%"},
        "no id": {**message, "entity": "me"},
        "a tenant that is no id": {**message, "tenant": "me"},
        "an unknown tenant": {**message, "tenant": str(uuid4())},
        "too deep": {**message, "payload": deep},
        "too large": {**message, "payload": "x" * 1_000_000},
    }


@pytest.mark.parametrize("name", sorted(unusual({})))
@pytest.mark.parametrize("is_batch", [False, True])
def test_whatever_is_wrong_is_left_to_the_long_way_before_anything_is_done(
    installation, secret, monkeypatch, name, is_batch
) -> None:
    counter = rates.RateCounter()
    monkeypatch.setattr("queueapi.rest.short_way.counter", counter)
    good, wrong = one(installation), unusual(one(installation))[name]
    body = {"messages": [good, wrong]} if is_batch and not isinstance(wrong, bytes) else wrong
    assert shortly(secret, body, is_batch=is_batch) is None
    assert messages_in(World(installation)) == 0
    assert not counter._counts
    path = f"{MESSAGES}/batch" if is_batch else MESSAGES
    assert at_length(secret, body, path).status_code in (400, 413)


@pytest.mark.parametrize("count", [0, 501])
def test_none_and_too_many_are_no_batch(installation, secret, count) -> None:
    assert shortly(secret, {"messages": [one(installation)] * count}, is_batch=True) is None


def test_who_may_not_is_left_to_the_long_way(installation, secret) -> None:
    root = User.objects.get(username="root")
    message = one(installation)
    assert shortly(secret, message).status_code == 201
    reader = token_of(root, ["messages:read"])[1]
    other = create_tenant(SYSTEM, "Foundry")
    stranger = token_of(person("eve", Role.TENANT_ADMIN, other), ["messages:write"], tenant=other)[1]
    for token in (reader, stranger, "", "swy_none", secret[:-1]):
        assert shortly(token, message) is None
    ApiToken.objects.update(revoked_at="2026-01-01T00:00:00Z")
    TOKENS.forget()
    assert shortly(secret, message) is None


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_tenants_token_need_not_say_whose_its_messages_are(installation, secret, is_batch) -> None:
    tenant = installation.tenant
    token = token_of(person("ada.l", Role.TENANT_ADMIN, tenant), ["messages:write"], tenant=tenant)[1]
    message = one(installation)
    del message["tenant"]
    body = {"messages": [message, one(installation)]} if is_batch else message
    assert told(shortly(token, body, is_batch=is_batch))[0] == 201
    assert messages_in(World(installation)) == (2 if is_batch else 1)
    assert shortly(secret, body, is_batch=is_batch) is None


def test_a_tenants_token_reaches_its_own_queue_before_the_systems(installation) -> None:
    tenant = installation.tenant
    isolated(tenant, installation.queue)
    token = token_of(person("ada.l", Role.TENANT_ADMIN, tenant), ["messages:write"], tenant=tenant)[1]
    answer = shortly(token, one(installation), "TELEMETRY")
    assert json.loads(answer.content)["topic"].startswith(f"telemetry.isolated.{tenant.id}")
    assert shortly(token, one(installation), str(installation.queue.id)).status_code == 201


def test_a_queue_of_another_tenant_or_that_takes_nothing_is_left_to_the_long_way(installation, secret) -> None:
    own = create_queue(SYSTEM, create_tenant(SYSTEM, "Owner"), name="Own", topic="own", handler="log")
    assert shortly(secret, one(installation), str(own.id)) is None
    assert shortly(secret, one(installation), "own") is None
    drain_queue(SYSTEM, installation.queue)
    assert shortly(secret, one(installation)) is None
    assert bearer(secret).post(MESSAGES, one(installation)).status_code == 409


def test_a_queue_that_was_deleted_meanwhile_is_told_so(installation, secret, monkeypatch) -> None:
    monkeypatch.setattr("queueapi.actions.messages.is_there", lambda _: False)
    assert told(shortly(secret, one(installation)))[0] == 409


def test_quotas_are_told_as_by_the_long_way(installation, secret) -> None:
    change_tenant(SYSTEM, installation.tenant, messages_per_s=1, burst_s=2)
    messages = {"messages": [one(installation) for _ in range(3)]}
    status, _, batch = told(shortly(secret, messages, is_batch=True))
    assert (status, batch["stored"], batch["failed"]) == (207, 2, 1)
    assert batch["results"][2]["error"]["code"] == "queue_overloaded"
    short, long = shortly(secret, one(installation)), bearer(secret).post(MESSAGES, one(installation))
    assert (short.status_code, short["Content-Type"]) == (long.status_code, long["Content-Type"])
    assert short["Retry-After"] == long["Retry-After"] == "1"


def test_a_tenant_that_is_gone_is_left_to_the_long_way(installation, secret) -> None:
    gone = create_tenant(SYSTEM, "Foundry")
    message = one(installation, tenant=str(gone.id))
    assert shortly(secret, message).status_code == 201
    delete_tenant(SYSTEM, gone)
    assert shortly(secret, message) is None


def test_who_sends_too_many_requests_is_told_so(installation, secret, settings) -> None:
    rest = settings.SWITCHYARD.rest
    object.__setattr__(rest, "requests_per_minute", 1)
    try:
        answers = [shortly(secret, one(installation)) for _ in range(2)]
    finally:
        object.__setattr__(rest, "requests_per_minute", type(rest)().requests_per_minute)
    assert [answer.status_code for answer in answers] == [201, 429]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["0", "0"]
    assert messages_in(World(installation)) == 1


@pytest.mark.parametrize("count", [1, 500])
def test_the_database_is_asked_twice(installation, secret, django_assert_num_queries, count) -> None:
    """For the queue, and whether it is still there; for token and tenant every few seconds."""
    body = {"messages": [one(installation) for _ in range(count)]}
    assert shortly(secret, body, is_batch=True).status_code == 201
    with django_assert_num_queries(2):
        assert shortly(secret, body, is_batch=True).status_code == 201


def test_many_that_come_together_are_answered_each_as_if_alone(installation, secret, django_assert_num_queries) -> None:
    other = suspend_tenant(SYSTEM, create_tenant(SYSTEM, "Foundry"), "unpaid")
    bodies = [one(installation), one(installation) | {"tenant": str(other.id)}, {}, one(installation)]
    asked = [Asked("Telemetry", False, secret, f"request-{number}", json.dumps(body).encode())
             for number, body in enumerate(bodies)]  # fmt: skip
    asked.append(Asked("Telemetry", False, "swy_nobody", None, asked[0].body))
    answers = answer_together(asked)
    told = [answer and (answer.status_code, answer["X-Request-Id"]) for answer in answers]
    assert told == [(201, "request-0"), (409, "request-1"), None, (201, "request-3"), None]
    assert json.loads(answers[1].content)["code"] == "tenant_suspended"
    assert messages_in(World(installation)) == 2
    with django_assert_num_queries(2):
        answer_together([asked[0]] * 9)
    assert messages_in(World(installation)) == 11


class Web:
    """The whole application, as a server calls it."""

    def __init__(self) -> None:
        self._django = ThreadKeepingHandler()
        self._publishing = PublishingFirst(self._django)

    def post(self, path: str, body: bytes, *, query: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
        sent: list[dict[str, Any]] = []
        head = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body)), **headers}
        scope = {
            "type": "http", "method": "POST", "path": path, "query_string": query.encode(), "http_version": "1.1",
            "scheme": "http", "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in head.items()],
        }  # fmt: skip
        waiting = [
            {"type": "http.request", "body": body[:7], "more_body": True},
            {"type": "http.request", "body": body[7:]},
        ]

        async def receive() -> dict[str, Any]:
            # The client stays.
            return waiting.pop(0) if waiting else await asyncio.get_running_loop().create_future()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async_to_sync(self._publishing)(scope, receive, send)
        told = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], told, b"".join(part["body"] for part in sent[1:])


PASSING = {"x-request-id", "ratelimit-remaining", "ratelimit-reset", "content-length"}


@pytest.mark.parametrize("is_batch", [False, True])
def test_both_ways_have_the_same_headers(installation, secret, is_batch) -> None:
    message = one(installation)
    path, body = (f"{MESSAGES}/batch", {"messages": [message]}) if is_batch else (MESSAGES, message)
    web, raw, token = Web(), json.dumps(body).encode(), {"authorization": f"Bearer {secret}"}
    (status, short, _), (other, long, _) = web.post(path, raw, **token), web.post(path, raw, **token, if_match="*")
    assert (status, other) == (201, 201)
    assert short.keys() == long.keys()
    assert {name: short[name] for name in short.keys() - PASSING} == {
        name: long[name] for name in long.keys() - PASSING
    }


def test_what_is_handed_on_arrives_as_it_came(installation, secret) -> None:
    web, body, token = Web(), json.dumps(one(installation)).encode(), {"authorization": f"Bearer {secret}"}
    refused = web.post(MESSAGES, b"{}", **token)
    assert (refused[0], json.loads(refused[2])["code"]) == (400, "invalid_input")
    plan = web.post(MESSAGES, body, query="dry_run=true", **token)
    assert (plan[0], json.loads(plan[2])["summary"]) == (200, "one message would be stored")
    assert web.post(MESSAGES, body)[0] == 401
    assert web.post(MESSAGES, body, **token, host="elsewhere.example")[0] == 400
    assert web.post("/api/v1/queues/none/messages", body, **token)[0] == 404
    assert messages_in(World(installation)) == 0
    assert web.post(MESSAGES, body, **token, idempotency_key="1")[0] == 201
    assert messages_in(World(installation)) == 1
