"""What all endpoints have in common. One that is added to the interface has to be added to the table of `rest_kit`."""

import json
from dataclasses import replace
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient, APIRequestFactory, force_authenticate

from queueapi.models import AuditEntry, IdempotencyKey, Queue, SignInFailures
from queueapi.rest.conventions import rates
from queueapi.rest.conventions.idempotency import answers_with_a_secret
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import HasRole
from queuecore.testing.clock import ManualClock
from tests.rest_kit import API, TABLE, Caller, World, differences, operations, snapshot

WRITES = sorted(name for name in TABLE if not name.startswith("GET"))
READS = sorted(name for name in TABLE if name.startswith("GET"))
DETAIL_WRITES = sorted(name for name in WRITES if "{" in name or TABLE[name].is_whole)
RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
PROBLEM = "application/problem+json"


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


@pytest.fixture
def world(installation) -> World:
    return World(installation)


def assert_problem(answer, status: int, code: str) -> None:
    assert (answer.status_code, answer["Content-Type"]) == (status, PROBLEM), answer.content
    problem = answer.json()
    assert (problem["code"], problem["status"]) == (code, status)
    assert problem["detail"]
    assert problem["request_id"] == answer["X-Request-Id"]
    assert all(name in answer for name in RATE)


def test_every_operation_is_in_the_table() -> None:
    assert operations().keys() == TABLE.keys()


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_schema_tells_the_conventions(name) -> None:
    told = operations()[name]
    assert told["summary"]
    parameters = {(one["in"], one["name"]) for one in told["parameters"]}
    assert ("header", "X-Request-Id") in parameters
    is_write = name in WRITES
    assert (("query", "dry_run") in parameters) == (("header", "Idempotency-Key") in parameters) == is_write
    assert (("header", "If-Match") in parameters) == (name in DETAIL_WRITES)
    assert (("query", "ordering") in parameters) == TABLE[name].is_list
    codes = {"400", "401", "403", "429", "500"} | ({"409", "415", "422"} if is_write else set())
    codes |= ({"404"} if "{" in name else set()) | ({"412"} if name in DETAIL_WRITES else set())
    assert codes <= told["responses"].keys()
    for code in codes:
        assert list(told["responses"][code]["content"]) == [PROBLEM]
        assert {"X-Request-Id", *RATE} <= told["responses"][code]["headers"].keys()
    assert ("304" in told["responses"]) == TABLE[name].is_thing


def test_strangers_are_told_so_everywhere(world) -> None:
    for name in TABLE:
        assert_problem(Caller(APIClient(), name, world)(), 401, "not_authenticated")


def test_a_parameter_that_nobody_reads_is_refused_everywhere(api, world) -> None:
    # In one order: who drains the queue before somebody else publishes to it would get no further.
    for name in sorted(TABLE.keys() - {"GET /schema"}):
        answer = Caller(api, name, world)("?colour=red")
        assert_problem(answer, 400, "invalid_input")
        assert "there is no parameter 'colour'" in answer.json()["errors"]["colour"][0]


@pytest.mark.parametrize("name", READS)
def test_reading(api, world, name) -> None:
    get = Caller(api, name, world)
    answer = get()
    assert answer.status_code == 200
    assert all(header in answer for header in ("X-Request-Id", *RATE))
    assert ("ETag" in answer) == get.call.is_thing
    if get.call.is_thing:
        again = get(headers={"If-None-Match": answer["ETag"]})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"])
        assert get(headers={"If-None-Match": '"another"'}).status_code == 200
    answer.close()
    if get.call.is_list:
        wrong = get("?ordering=colour")
        assert_problem(wrong, 400, "invalid_input")
        assert "there is no ordering 'colour'" in wrong.json()["errors"]["ordering"][0]


@pytest.mark.parametrize("name", WRITES)
def test_a_dry_run_plans_and_changes_nothing(api, world, name) -> None:
    write = Caller(api, name, world)
    before = snapshot(world)
    planned = write("?dry_run=true")
    assert planned.status_code == 200, planned.content
    plan = planned.json()
    assert plan["summary"]
    assert all(change.keys() == {"what", "before", "after"} for change in plan["changes"])
    assert isinstance(plan["warnings"], list)
    wrong = write("?dry_run=perhaps")
    assert_problem(wrong, 400, "invalid_input")
    assert "neither true nor false" in wrong.json()["errors"]["dry_run"][0]
    assert_problem(write("?dry_run="), 400, "invalid_input")
    assert "did you mean dry_run?" in write("?dryrun=true").json()["errors"]["dryrun"][0]
    assert differences(before, snapshot(world)) == []


@pytest.mark.parametrize("name", WRITES)
def test_a_request_that_is_sent_again_is_carried_out_once(api, world, name) -> None:
    write = Caller(api, name, world)
    key = str(uuid4())
    first = write(headers={"Idempotency-Key": key})
    assert 200 <= first.status_code < 300, first.content
    assert "Idempotent-Replayed" not in first
    after = snapshot(world)
    again = write(headers={"Idempotency-Key": key})
    if write.call.is_secret:
        assert_problem(again, 409, "answer_not_kept")
        assert differences(after, snapshot(world)) == []
        return
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert (again.get("Content-Type"), again.get("ETag")) == (first.get("Content-Type"), first.get("ETag"))
    assert again["Idempotent-Replayed"] == "true"
    other = write(headers={"Idempotency-Key": key}, body={"colour": "red"})
    assert_problem(other, 422, "idempotency_key_reused")
    assert differences(after, snapshot(world)) == []


@pytest.mark.parametrize("name", DETAIL_WRITES)
def test_what_has_changed_meanwhile_is_left_alone(api, world, name) -> None:
    write = Caller(api, name, world)
    before = snapshot(world)
    assert_problem(write(headers={"If-Match": '"of yesterday"'}), 412, "precondition_failed")
    assert_problem(write("?dry_run=true", headers={"If-Match": '"of yesterday"'}), 412, "precondition_failed")
    assert differences(before, snapshot(world)) == []
    seen = api.get(write.thing)["ETag"]
    assert 200 <= write(headers={"If-Match": f'"another", {seen}'}).status_code < 300


@pytest.mark.parametrize("name", WRITES)
def test_bodies_are_json_with_fields_that_somebody_reads(api, world, name) -> None:
    write = Caller(api, name, world)
    before = snapshot(world)
    unknown = write(body={**(write.body or {}), "colour": "red"})
    assert_problem(unknown, 400, "invalid_input")
    assert "colour" in unknown.content.decode()
    assert_problem(write(body="<colour/>", content_type="application/xml"), 415, "unsupported_media_type")
    assert differences(before, snapshot(world)) == []


def test_a_misspelt_field_or_filter_is_answered_with_the_right_one(api, world) -> None:
    pause = api.post(f"{API}/queues/telemetry/pause", {"reasons": "too noisy"})
    assert pause.json()["errors"]["reasons"] == ["there is no field 'reasons'; did you mean reason?"]
    listed = api.get(f"{API}/queues", {"tennant": "x"})
    assert listed.json()["errors"]["tennant"] == ["there is no parameter 'tennant'; did you mean tenant?"]
    letters = api.get(f"{API}/dead-letters", {"sate": "open"})
    assert letters.json()["errors"]["sate"] == ["there is no parameter 'sate'; did you mean state?"]


@pytest.mark.parametrize(
    ("name", "field", "value", "remedy"),
    [
        ("POST /queues/{queue}/pause", "reason", 5, "'5' is a number; send a text"),
        ("POST /queues/{queue}/pause", "reason", ["x"], "\"['x']\" is a list; send a text"),
        ("POST /queues/{queue}/pause", "partition", "3", "'3' is a text; send a whole number"),
        ("POST /queues/{queue}/pause", "partition", True, "'True' is true or false; send a whole number"),
        ("POST /queues/{queue}/pause", "tenant", "", "an empty text is no id; send one, or leave it out"),
        ("POST /queues", "dlq_enabled", "yes", "'yes' is a text; send true or false"),
        ("POST /queues/{queue}/messages", "entity", 7, "'7' is a number; send a text"),
        ("POST /tokens", "scopes", [{}], "'{}' is an object; send a text"),
        ("POST /alert-rules", "channels", {}, "'{}' is an object; send a list"),
        ("POST /alert-rules", "channels", [7], "'7' is a number; send a text"),
    ],
)
def test_a_value_has_the_type_that_the_schema_says(api, world, name, field, value, remedy) -> None:
    write = Caller(api, name, world)
    before = snapshot(world)
    answer = write(body={**write.body, field: value})
    assert_problem(answer, 400, "invalid_input")
    assert answer.json()["errors"][field] == [remedy]
    assert differences(before, snapshot(world)) == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("queues?tenant=", "tenant"),
        ("queues?state=", "state"),
        ("queues?page_size=0", "page_size"),
        ("queues?page_size=501", "page_size"),
        ("queues?page_size=many", "page_size"),
        ("services?alive=maybe", "alive"),
        ("users?active=", "active"),
        ("tokens?revoked_at__isnull=2", "revoked_at__isnull"),
        ("dead-letter-groups?open_letters__gte=0.5", "open_letters__gte"),
        ("groups?active=", "active"),
        ("alert-rules?enabled=maybe", "enabled"),
        ("queues?format=json", "format"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(api, path, field) -> None:
    answer = api.get(f"{API}/{path}")
    assert_problem(answer, 400, "invalid_input")
    assert list(answer.json()["errors"]) == [field]


def test_a_filter_is_true_or_false(api, world) -> None:
    assert world.cluster
    living = [len(api.get(f"{API}/services?alive={value}").json()["results"]) for value in ("true", "1", "False", "0")]
    assert living == [2, 2, 0, 0]


@pytest.mark.parametrize(("ordering", "backwards"), [("name", False), ("-name", True), ("created_at", False)])
def test_lists_are_ordered_as_asked_for_page_by_page(api, world, ordering, backwards) -> None:
    for name in "CAB":
        assert api.post(f"{API}/queues", {"name": name, "topic": name, "handler": "log"}).status_code == 201
    expected = list(Queue.objects.order_by(ordering).values_list("name", flat=True))
    pages = [api.get(f"{API}/queues", {"ordering": ordering, "page_size": 2})]
    while following := pages[-1].json()["next"]:
        pages.append(api.get(following))
    assert [row["name"] for page in pages for row in page.json()["results"]] == expected
    assert len(pages) == 2
    back = api.get(pages[1].json()["previous"])
    assert [row["name"] for row in back.json()["results"]] == expected[:2]
    # Of another order it is no place.
    mixed = pages[0].json()["next"].replace(f"ordering={ordering}", "ordering=-created_at")
    assert_problem(api.get(mixed), 404, "not_found")


def test_a_clients_request_id_is_kept_where_it_is_sane(api, client) -> None:
    assert api.get(f"{API}/queues", headers={"X-Request-Id": "deploy-4711/a"})["X-Request-Id"] == "deploy-4711/a"
    for wrong in ("", "a b", "a\x7f", "x" * 129, "ä"):
        given = api.get(f"{API}/queues", headers={"X-Request-Id": wrong})["X-Request-Id"]
        assert given != wrong
        assert len(given) == 32
    assert len(client.get("/login/")["X-Request-Id"]) == 32


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("get", "/api/v1/nowhere", 404, "not_found"),
        ("get", "/api/v2/queues", 404, "not_found"),
        ("post", "/api/v1/queues/", 404, "not_found"),
        ("delete", "/api/v1/queues", 405, "method_not_allowed"),
        ("post", "/api/v1/routing", 405, "method_not_allowed"),
    ],
)
def test_whatever_is_refused_is_a_problem_with_a_code(api, method, path, status, code) -> None:
    assert_problem(getattr(api, method)(path), status, code)


def test_answers_are_json_alone(api) -> None:
    assert_problem(api.get(f"{API}/queues", headers={"Accept": "text/html"}), 406, "not_acceptable")


def test_a_host_that_is_not_ours_is_a_problem_too(api) -> None:
    assert_problem(api.get(f"{API}/queues", headers={"Host": "example.org"}), 400, "bad_request")


def test_a_body_and_its_depth_are_limited(api, world, settings) -> None:
    write = Caller(api, "POST /queues/{queue}/messages", world)
    large = write(body={**write.body, "payload": "x" * 3_000_000})
    assert_problem(large, 413, "payload_too_large")
    assert "2097152 bytes" in large.json()["detail"]
    settings.SWITCHYARD = replace(settings.SWITCHYARD, rest=replace(settings.SWITCHYARD.rest, max_json_depth=8))
    # The body itself is the first level.
    deep = write(body={**write.body, "payload": [[[[[[[[]]]]]]]]})
    assert_problem(deep, 400, "parse_error")
    assert "8 levels are the most" in deep.json()["detail"]
    assert write(body={**write.body, "payload": [[[[[[[]]]]]]]}).status_code == 201


def limited(settings, monkeypatch, **limits: int) -> ManualClock:
    """Few requests in a minute, which begins now and ends when the clock is told so."""
    clock = ManualClock(60_000 * 1000)
    monkeypatch.setattr(rates, "counter", rates.RateCounter(clock))
    settings.SWITCHYARD = replace(settings.SWITCHYARD, rest=replace(settings.SWITCHYARD.rest, **limits))
    return clock


def test_who_sends_too_many_requests_is_told_when_to_come_again(api, settings, monkeypatch) -> None:
    clock = limited(settings, monkeypatch, requests_per_minute=2)
    clock.advance(12.5)
    answers = [api.get(f"{API}/queues") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [[answer[name] for name in RATE] for answer in answers] == [
        ["2", "1", "48"],
        ["2", "0", "48"],
        ["2", "0", "48"],
    ]
    assert_problem(answers[2], 429, "rate_limited")
    assert answers[2]["Retry-After"] == "48"
    other = APIClient()
    other.force_authenticate(User.objects.create_superuser("ada", password="secret"))
    assert other.get(f"{API}/queues").status_code == 200
    clock.advance(47.5)
    assert api.get(f"{API}/queues").status_code == 200


def test_strangers_are_counted_by_their_address(installation, settings, monkeypatch) -> None:
    limited(settings, monkeypatch, anonymous_requests_per_minute=2)
    stranger = APIClient()
    paths = ("queues", "nowhere", "queues")
    assert [stranger.get(f"{API}/{path}").status_code for path in paths] == [401, 404, 429]
    assert stranger.get(f"{API}/queues", REMOTE_ADDR="192.0.2.7").status_code == 401


def test_limits_cost_no_query(api, django_assert_num_queries) -> None:
    """Three: the role of who asks, the queues, and their pauses."""
    with django_assert_num_queries(3):
        assert api.get(f"{API}/queues").status_code == 200


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ä"])
def test_a_key_must_be_one(api, world, key) -> None:
    write = Caller(api, "POST /queues/{queue}/messages", world)
    answer = write(headers={"Idempotency-Key": key})
    assert_problem(answer, 400, "invalid_input")
    assert "Idempotency-Key" in answer.json()["errors"]


def test_a_key_is_its_senders_alone(api, world) -> None:
    write = Caller(api, "POST /queues/{queue}/messages", world)
    other = APIClient()
    other.force_authenticate(User.objects.create_superuser("ada", password="secret"))
    answers = [Caller(client, write.name, world)(headers={"Idempotency-Key": "1"}) for client in (api, other)]
    assert answers[0].json()["offset"] + 1 == answers[1].json()["offset"]


def test_a_refusal_is_given_again_and_a_failure_is_tried_again(api, world, monkeypatch) -> None:
    create = Caller(api, "POST /queues", world)
    wrong = {**create.body, "handler": "nobody"}
    refused = [create(headers={"Idempotency-Key": "1"}, body=wrong) for _ in range(2)]
    assert [answer.status_code for answer in refused] == [400, 400]
    assert refused[1]["Idempotent-Replayed"] == "true"
    with monkeypatch.context() as broken:
        broken.setattr("queueapi.rest.v1.queues.create_queue", lambda *_, **__: 1 / 0)
        assert_problem(create(headers={"Idempotency-Key": "2"}), 500, "internal_error")
    assert create(headers={"Idempotency-Key": "2"}).status_code in (201, 202)


def test_an_answer_too_large_to_be_kept_is_not_given_again_nor_the_request_carried_out(api, world) -> None:
    edit = Caller(api, "PUT /dead-letters/{id}/message", world)
    large = {**edit.body, "payload": "x" * 300_000}
    assert edit(headers={"Idempotency-Key": "1"}, body=large).status_code == 200
    after = snapshot(world)
    assert_problem(edit(headers={"Idempotency-Key": "1"}, body=large), 409, "answer_not_kept")
    assert differences(after, snapshot(world)) == []


class Minting(Conventional):
    """A view of a test's own: its answer is a secret, and it cannot plan."""

    permission_classes = (HasRole,)
    minted: list[str] = []

    @answers_with_a_secret
    def post(self, request: Request) -> Response:
        self.minted.append(str(uuid4()))
        return Response({"token": self.minted[-1]}, status=201)


def minting(query: str = "", **headers: str) -> HttpResponse:
    request = APIRequestFactory().post(f"/mint{query}", {}, headers=headers)
    force_authenticate(request, User.objects.get(username="root"))
    answer = Minting.as_view()(request)
    return answer.render() if isinstance(answer, Response) else answer


def test_a_secret_is_answered_once_and_kept_nowhere(api, monkeypatch) -> None:
    monkeypatch.setattr(Minting, "minted", [])
    first, again = (minting(**{"Idempotency-Key": "1"}) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 409)
    assert json.loads(again.content)["code"] == "answer_not_kept"
    [token] = Minting.minted
    assert token in first.content.decode()
    assert IdempotencyKey.objects.get().body is None


def test_a_method_that_cannot_plan_does_nothing_in_a_dry_run(api, monkeypatch) -> None:
    monkeypatch.setattr(Minting, "minted", [])
    answer = minting("?dry_run=true")
    assert answer.status_code == 400
    assert "this cannot be planned" in json.loads(answer.content)["errors"]["dry_run"][0]
    assert Minting.minted == []


def test_a_wrong_password_counts_in_plans_and_under_keys_too(api, world) -> None:
    change = Caller(api, "PUT /me/password", world)
    wrong = {**change.body, "current": "guessed"}
    for query, headers in (("", {}), ("?dry_run=true", {}), ("", {"Idempotency-Key": "1"})):
        assert_problem(change(query, body=wrong, headers=headers), 400, "invalid_input")
    assert SignInFailures.objects.get().failures == 3


def test_what_a_process_has_counted_leaves_a_tenants_etag_alone(api, world) -> None:
    tenant = f"{API}/tenants/{world.tenant.id}"
    before = api.get(tenant)
    assert world.stored
    after = api.get(tenant)
    assert after.json()["published_here"]["messages"] == before.json()["published_here"]["messages"] + 1
    assert after["ETag"] == before["ETag"]


def test_the_audit_says_by_which_request(api, world) -> None:
    pause = Caller(api, "POST /queues/{queue}/pause", world)
    assert pause(headers={"X-Request-Id": "deploy-4711"}).status_code == 200
    assert AuditEntry.objects.latest("id").request_id == "deploy-4711"


def test_a_list_has_no_etag_that_could_match(api, world) -> None:
    create = Caller(api, "POST /queues", world)
    assert_problem(create(headers={"If-Match": '"x"'}), 412, "precondition_failed")
    assert not Queue.objects.filter(name="Orders").exists()


def test_a_secret_that_is_hidden_changes_the_etag(api, world) -> None:
    options = {"url": "https://hooks.example.org/x", "secret": "s3cret-enough-for-a-signature-0123"}
    queue = f"{API}/queues/telemetry"
    tags = {api.get(queue)["ETag"]}
    tags.add(api.patch(queue, {"handler": "webhook", "handler_options": options})["ETag"])
    tags.add(api.patch(queue, {"handler_options": {**options, "secret": "another-one-for-a-signature-0123"}})["ETag"])
    tags.add(api.post(f"{queue}/pause", {"reason": "x"})["ETag"])
    assert len(tags) == 4
    assert api.get(queue)["ETag"] in tags


def test_a_plan_warns_of_what_is_seldom_wanted(api, world) -> None:
    assert world.cluster
    body = {"name": "Orders", "topic": "orders", "handler": "log", "partitions": 1, "dlq_enabled": False}
    plan = api.post(f"{API}/queues?dry_run=true", body).json()
    assert [warning.split(",")[0] for warning in plan["warnings"]] == [
        "2 services consume queues of TB_RULE_ENGINE",
        "without dead letters",
    ]
    changes = api.patch(f"{API}/queues/telemetry?dry_run=true", {"retries": 7}).json()
    told = {"what": f"queue {world.queue.name}: retries", "before": 1, "after": 7}
    assert (changes["summary"], changes["changes"]) == (f"change queue {world.queue.name}", [told])
