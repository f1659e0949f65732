"""Every endpoint, by every method, for every role, on the own tenant's things and on another's. What is not in the
table fails: whoever adds an endpoint says here who may."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, resolve
from django.utils import timezone
from rest_framework.response import Response
from rest_framework.test import APIClient, APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.isolation import request_isolation
from queueapi.actions.message_types import Description, create_message_type
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.choices import Role
from queueapi.cluster.models import Partition, Rebalance
from queueapi.models import (
    DEFAULT_PROFILE,
    AuditEntry,
    LagCurrent,
    Operation,
    QuarantinedLetter,
    Replay,
    RequestCurrent,
    Tenant,
)
from queueapi.rest.permissions import Access, HasRole
from queueapi.rest.v1.urls import urlpatterns
from queuecore.messages import QueueMessage
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S
from tests.alerts import make_alert, make_channel, make_silence
from tests.instances import announce
from tests.letters import make_letter
from tests.people import api_of, person, token_of
from tests.rest_kit import operations

ADMIN, OPERATOR, AUDITOR, TENANT_ADMIN, VIEWER = Role
STAFF = {ADMIN, OPERATOR}
SYSTEM_ROLES = {*STAFF, AUDITOR}
WORKING = {*STAFF, TENANT_ADMIN}
EVERYONE = set(Role)


class Row(NamedTuple):
    """`path` may name things of a tenant's: one that is another's is not found. `body` is what is sent where more than
    the path is looked at first."""

    path: str
    allowed: set[Role]
    is_owned: bool = False
    body: dict[str, Any] = {}


def owned(path: str, allowed: set[Role], **body: Any) -> Row:
    return Row(path, allowed, is_owned=True, body=body)


TABLE = {
    ("GET", "tenant-list"): Row("tenants", EVERYONE),
    ("POST", "tenant-list"): Row("tenants", {ADMIN}),
    ("GET", "tenant-detail"): owned("tenants/{tenant}", EVERYONE),
    ("PATCH", "tenant-detail"): owned("tenants/{tenant}", {ADMIN}),
    ("DELETE", "tenant-detail"): owned("tenants/{tenant}", {ADMIN}),
    ("POST", "tenant-suspend"): owned("tenants/{tenant}/suspend", STAFF),
    ("POST", "tenant-resume"): owned("tenants/{tenant}/resume", STAFF),
    ("POST", "tenant-isolate"): owned("tenants/{tenant}/isolate", {ADMIN}),
    ("GET", "isolationrequest-list"): Row("isolation-requests", EVERYONE),
    ("POST", "isolationrequest-list"): Row("isolation-requests", WORKING),
    ("GET", "isolationrequest-detail"): owned("isolation-requests/{isolation}", EVERYONE),
    ("PATCH", "isolationrequest-detail"): owned("isolation-requests/{isolation}", WORKING),
    ("POST", "isolationrequest-comment"): owned("isolation-requests/{isolation}/comment", WORKING),
    ("POST", "isolationrequest-approve"): owned("isolation-requests/{isolation}/approve?dry_run=true", {ADMIN}),
    ("POST", "isolationrequest-refuse"): owned("isolation-requests/{isolation}/refuse", {ADMIN}),
    # What another has asked for is told in test_isolation.py.
    ("POST", "isolationrequest-withdraw"): owned("isolation-requests/{isolation}/withdraw", WORKING),
    ("POST", "isolationrequest-retry"): owned("isolation-requests/{isolation}/retry", {ADMIN}),
    ("POST", "isolationrequest-retire"): owned("isolation-requests/{isolation}/retire", {ADMIN}),
    ("GET", "tenantprofile-list"): Row("tenant-profiles", SYSTEM_ROLES),
    ("POST", "tenantprofile-list"): Row("tenant-profiles", {ADMIN}),
    ("GET", "tenantprofile-detail"): Row("tenant-profiles/{profile}", SYSTEM_ROLES),
    ("PATCH", "tenantprofile-detail"): Row("tenant-profiles/{profile}", {ADMIN}),
    ("DELETE", "tenantprofile-detail"): Row("tenant-profiles/{profile}", {ADMIN}),
    ("GET", "queue-list"): Row("queues", EVERYONE),
    ("POST", "queue-list"): Row("queues", {ADMIN}),
    ("GET", "queue-detail"): owned("queues/{queue}", EVERYONE),
    ("PATCH", "queue-detail"): owned("queues/{queue}", {ADMIN}),
    ("DELETE", "queue-detail"): owned("queues/{queue}?dry_run=true", {ADMIN}),
    ("POST", "queue-drain"): owned("queues/{queue}/drain?dry_run=true", WORKING),
    ("POST", "queue-resize"): owned("queues/{queue}/resize?dry_run=true", {ADMIN}, partitions=7),
    ("POST", "queue-activate"): owned("queues/{queue}/activate", WORKING),
    ("GET", "queue-consumers"): owned("queues/{queue}/consumers", EVERYONE),
    ("POST", "queue-messages"): owned("queues/{queue}/messages", WORKING),
    ("GET", "queue-messages"): owned("queues/{queue}/messages", SYSTEM_ROLES),
    ("GET", "queue-message"): owned("queues/{queue}/messages/0/0", SYSTEM_ROLES),
    ("GET", "queue-tail"): owned("queues/{queue}/messages/tail?seconds=1", SYSTEM_ROLES),
    ("POST", "queue-batch"): owned("queues/{queue}/messages/batch", WORKING),
    ("GET", "topic-list"): Row("topics", SYSTEM_ROLES),
    ("GET", "topic-detail"): Row("topics/telemetry.0", SYSTEM_ROLES),
    ("GET", "group-list"): Row("groups", SYSTEM_ROLES),
    ("GET", "group-detail"): Row("groups/readers", SYSTEM_ROLES),
    ("POST", "group-offsets"): Row("groups/readers/offsets", STAFF),
    ("GET", "messagetype-list"): Row("message-types", SYSTEM_ROLES),
    ("POST", "messagetype-list"): Row("message-types", {ADMIN}),
    ("GET", "messagetype-detail"): Row("message-types/order", SYSTEM_ROLES),
    ("PATCH", "messagetype-detail"): Row("message-types/order", {ADMIN}),
    ("DELETE", "messagetype-detail"): Row("message-types/order", {ADMIN}),
    ("POST", "queue-pause"): owned("queues/{queue}/pause", WORKING, reason="x"),
    ("POST", "queue-resume"): owned("queues/{queue}/resume", WORKING),
    ("GET", "quarantinedletter-list"): Row("dead-letters/quarantined", EVERYONE),
    ("GET", "deadletter-list"): Row("dead-letters", EVERYONE),
    ("POST", "deadletter-discard"): Row("dead-letters/discard", WORKING),
    ("POST", "deadletter-restore"): Row("dead-letters/restore", WORKING),
    ("POST", "deadletter-release"): Row("dead-letters/release", WORKING),
    ("GET", "deadletter-detail"): owned("dead-letters/{letter}", EVERYONE),
    ("PUT", "deadletter-message"): owned("dead-letters/{letter}/message", WORKING, headers={}, payload={}),
    ("DELETE", "deadletter-message"): owned("dead-letters/{letter}/message", WORKING),
    ("POST", "deadletter-note"): owned("dead-letters/{letter}/note", WORKING, note="x"),
    ("POST", "deadletter-replay"): owned("dead-letters/{letter}/replay", WORKING),
    ("GET", "deadlettergroup-list"): Row("dead-letter-groups", EVERYONE),
    ("GET", "deadlettergroup-detail"): owned("dead-letter-groups/{group}", EVERYONE),
    ("GET", "deadlettergroup-trend"): owned("dead-letter-groups/{group}/trend", EVERYONE),
    ("POST", "deadlettergroup-note"): owned("dead-letter-groups/{group}/note", WORKING),
    ("POST", "deadlettergroup-discard"): owned("dead-letter-groups/{group}/discard", WORKING),
    ("POST", "deadlettergroup-restore"): owned("dead-letter-groups/{group}/restore", WORKING),
    ("POST", "deadlettergroup-release"): owned("dead-letter-groups/{group}/release", WORKING),
    ("GET", "replay-list"): Row("replays", EVERYONE),
    ("POST", "replay-list"): Row("replays", WORKING),
    ("GET", "replay-detail"): owned("replays/{replay}", EVERYONE),
    ("GET", "replay-items"): owned("replays/{replay}/items", EVERYONE),
    ("POST", "replay-pause"): owned("replays/{replay}/pause", WORKING),
    ("POST", "replay-resume"): owned("replays/{replay}/resume", WORKING),
    ("POST", "replay-cancel"): owned("replays/{replay}/cancel", WORKING),
    ("GET", "operation-list"): Row("operations", EVERYONE),
    ("GET", "operation-detail"): owned("operations/{operation}", EVERYONE),
    ("POST", "operation-cancel"): owned("operations/{operation}/cancel", WORKING),
    ("POST", "operation-pause"): owned("operations/{operation}/pause", WORKING),
    ("POST", "operation-resume"): owned("operations/{operation}/resume", WORKING),
    ("GET", "lagcurrent-list"): Row("lag", EVERYONE),
    ("GET", "lagcurrent-detail"): owned("lag/{lag}", EVERYONE),
    ("GET", "lagcurrent-totals"): Row("lag/totals", EVERYONE),
    ("GET", "queuelag-list"): Row("lag/queues", EVERYONE),
    ("GET", "queue-lag"): owned("queues/{queue}/lag", EVERYONE),
    ("GET", "queue-lag-history"): owned("queues/{queue}/lag/history", EVERYONE),
    ("GET", "queue-processing"): owned("queues/{queue}/processing", EVERYONE),
    ("GET", "queue-heat"): owned("queues/{queue}/heat", EVERYONE),
    ("GET", "requestcurrent-list"): Row("pending-requests", SYSTEM_ROLES),
    ("GET", "requestcurrent-detail"): Row("pending-requests/{requests}", SYSTEM_ROLES),
    ("GET", "requestcurrent-totals"): Row("pending-requests/totals", SYSTEM_ROLES),
    ("GET", "requeststats-list"): Row("pending-requests/history", SYSTEM_ROLES),
    ("GET", "tenantusageday-list"): Row("usage", EVERYONE),
    ("GET", "usagetotal-list"): Row("usage/totals", EVERYONE),
    ("GET", "tenantusageday-export-csv"): Row("usage/export.csv", EVERYONE),
    ("GET", "pipeline"): Row("pipeline", SYSTEM_ROLES),
    ("POST", "pipeline-back-fills"): Row("pipeline/back-fills", STAFF),
    ("GET", "alert-list"): Row("alerts", EVERYONE),
    ("GET", "alert-counts"): Row("alerts/counts", EVERYONE),
    ("GET", "alert-detail"): owned("alerts/{alert}", EVERYONE),
    ("POST", "alert-acknowledge"): owned("alerts/{alert}/acknowledge", WORKING),
    ("POST", "alert-silence"): owned("alerts/{alert}/silence", STAFF),
    ("GET", "alertrule-list"): Row("alert-rules", {*SYSTEM_ROLES, TENANT_ADMIN}),
    ("POST", "alertrule-list"): Row("alert-rules", {ADMIN}),
    ("GET", "alertrule-detail"): owned("alert-rules/{rule}", {*SYSTEM_ROLES, TENANT_ADMIN}),
    ("PATCH", "alertrule-detail"): owned("alert-rules/{rule}", {ADMIN}),
    ("DELETE", "alertrule-detail"): owned("alert-rules/{rule}?dry_run=true", {ADMIN}),
    ("GET", "alertchannel-list"): Row("alert-channels", SYSTEM_ROLES),
    ("POST", "alertchannel-list"): Row("alert-channels", {ADMIN}),
    ("GET", "alertchannel-detail"): Row("alert-channels/{channel}", SYSTEM_ROLES),
    ("PATCH", "alertchannel-detail"): Row("alert-channels/{channel}", {ADMIN}),
    ("DELETE", "alertchannel-detail"): Row("alert-channels/{channel}?dry_run=true", {ADMIN}),
    ("POST", "alertchannel-test"): Row("alert-channels/{channel}/test?dry_run=true", STAFF),
    ("GET", "alertchannel-deliveries"): Row("alert-channels/{channel}/deliveries", SYSTEM_ROLES),
    ("GET", "silence-list"): Row("silences", SYSTEM_ROLES),
    ("POST", "silence-list"): Row("silences", STAFF),
    ("GET", "silence-detail"): Row("silences/{silence}", SYSTEM_ROLES),
    ("DELETE", "silence-detail"): Row("silences/{silence}?dry_run=true", STAFF),
    ("GET", "serviceinstance-list"): Row("services", SYSTEM_ROLES),
    ("GET", "serviceinstance-detail"): Row("services/host-1", SYSTEM_ROLES),
    ("POST", "serviceinstance-drain"): Row("services/host-1/drain", STAFF),
    ("POST", "serviceinstance-undrain"): Row("services/host-1/undrain", STAFF),
    ("GET", "partition-list"): Row("partitions", SYSTEM_ROLES),
    ("GET", "partition-detail"): Row("partitions/telemetry.0", SYSTEM_ROLES),
    ("GET", "partition-resolve"): Row("partitions/resolve?queue=telemetry&entity=x", SYSTEM_ROLES),
    ("GET", "rebalance-list"): Row("rebalances", SYSTEM_ROLES),
    ("POST", "rebalance-list"): Row("rebalances", STAFF),
    ("GET", "rebalance-detail"): Row("rebalances/{rebalance}", SYSTEM_ROLES),
    ("POST", "rebalance-cancel"): Row("rebalances/{rebalance}/cancel", STAFF),
    ("GET", "routing"): Row("routing", SYSTEM_ROLES),
    ("GET", "auditentry-list"): Row("audit", {*SYSTEM_ROLES, TENANT_ADMIN}),
    ("GET", "auditentry-detail"): owned("audit/{entry}", {*SYSTEM_ROLES, TENANT_ADMIN}),
    ("GET", "auditentry-export-csv"): Row("audit/export.csv", {*SYSTEM_ROLES, TENANT_ADMIN}),
    ("GET", "auditentry-export-jsonl"): Row("audit/export.jsonl", {*SYSTEM_ROLES, TENANT_ADMIN}),
    ("GET", "apitoken-list"): Row("tokens", {*SYSTEM_ROLES, TENANT_ADMIN}),
    ("POST", "apitoken-list"): Row("tokens", WORKING),
    # An operator's tokens are their own: that one of a tenant's is not found is told in test_tokens.py.
    ("GET", "apitoken-detail"): owned("tokens/{token}", {ADMIN, AUDITOR, TENANT_ADMIN}),
    ("POST", "apitoken-revoke"): owned("tokens/{token}/revoke", {ADMIN, TENANT_ADMIN}),
    ("GET", "user-list"): Row("users", {ADMIN, AUDITOR}),
    ("POST", "user-list"): Row("users", {ADMIN}),
    ("GET", "user-detail"): Row("users/{user}", {ADMIN, AUDITOR}),
    ("PUT", "user-role"): Row("users/{user}/role", {ADMIN}),
    ("PUT", "user-password"): Row("users/{user}/password", {ADMIN}),
    ("POST", "user-deactivate"): Row("users/{user}/deactivate", {ADMIN}),
    ("POST", "user-activate"): Row("users/{user}/activate", {ADMIN}),
    ("GET", "configuration"): Row("configuration", {ADMIN}),
    ("POST", "configuration"): Row("configuration?dry_run=true", {ADMIN}, body={"format": 1}),
    ("GET", "health"): Row("health", SYSTEM_ROLES),
    ("GET", "version"): Row("version", EVERYONE),
    ("GET", "me"): Row("me", EVERYONE),
    ("PUT", "own-password"): Row("me/password", EVERYONE),
    ("GET", "schema"): Row("schema", EVERYONE),
    ("GET", "api-docs"): Row("docs", EVERYONE),
}
NOT_FOUND_TO_OPERATORS = {("GET", "apitoken-detail"), ("POST", "apitoken-revoke")}


def endpoints(patterns: list[Any] = urlpatterns) -> Iterator[tuple[str, str, type[APIView]]]:
    """Method, name and view of all there are."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from endpoints(pattern.url_patterns)
        elif isinstance(pattern, URLPattern) and "format" not in str(pattern.pattern):
            view = pattern.callback.cls
            methods = getattr(pattern.callback, "actions", None) or [
                name for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)
            ]
            yield from ((method.upper(), str(pattern.name), view) for method in methods if method != "head")


@dataclass
class World:
    """Two tenants with one thing of each kind. `paths` are a tenant's, for `str.format`."""

    own: Tenant
    paths: dict[str, dict[str, Any]]


@pytest.fixture
def world(installation) -> World:
    tenants = {"own": installation.tenant, "foreign": create_tenant(SYSTEM, "Foundry")}
    announce("host-1")
    Partition.objects.create(
        name="telemetry.0", service_type="TB_RULE_ENGINE", queue="Telemetry", number=0, tenant=installation.tenant.pk
    )
    now = timezone.now()
    over = Rebalance.objects.create(state="done", cause="membership", reason="x", created_at=now, finished_at=now)
    description = Description.of({"order.proto": 'syntax = "proto3";\nmessage Order {}\n'})
    create_message_type(SYSTEM, name="order", message="Order", description=description)
    runtime.provider().admin().alter_group_offsets("readers", {installation.queue.partition_info(0).place: 0})
    target = person("somebody", Role.OPERATOR)
    asking = RequestCurrent.objects.create(service_id="shop-1", request_topic="prices", as_of=now)
    shared = {
        "rebalance": over.pk,
        "user": target.pk,
        "profile": DEFAULT_PROFILE,
        "requests": asking.pk,
        "channel": make_channel().pk,
        "silence": make_silence(installation.queue).pk,
    }
    return World(installation.tenant, {kind: shared | _things(tenant) for kind, tenant in tenants.items()})


def _things(tenant: Tenant) -> dict[str, Any]:
    queue = create_queue(SYSTEM, tenant, name="Own", topic="own", handler="log")
    send_and_wait(runtime.provider().producer(), queue.partition_info(0), QueueMessage(uuid4(), b"{}"), DEADLINE_S)
    letter = make_letter(queue, tenant=tenant)
    operation = Operation.objects.create(kind="replay_letters", summary="x", total=1, tenant=tenant)
    replay = Replay.objects.create(operation=operation)
    QuarantinedLetter.objects.create(
        letter_topic=queue.letter_topic, letter_partition=0, letter_offset=0, queue=queue, error="x"
    )
    lag = LagCurrent.objects.create(
        queue=queue, partition=0, topic="t", consumer_group="g", end_offset=1, lag_messages=1, as_of=timezone.now()
    )
    entry = AuditEntry.objects.filter(tenant_id=tenant.pk).latest("id")
    alert = make_alert(queue)
    isolation = request_isolation(SYSTEM, tenant, [{"name": "Telemetry"}], "x")
    token, _ = token_of(person(f"token-of-{tenant}", Role.TENANT_ADMIN, tenant), ["queues:read"])
    return {
        "tenant": tenant.pk,
        "queue": queue.pk,
        "letter": letter.pk,
        "group": letter.group_id,
        "operation": operation.pk,
        "replay": replay.pk,
        "lag": lag.pk,
        "entry": entry.pk,
        "token": token.pk,
        "isolation": isolation.pk,
        "alert": alert.pk,
        "rule": alert.rule_id,
    }


def call(client: APIClient, method: str, row: Row, things: dict[str, Any]) -> int:
    url = f"/api/v1/{row.path.format(**things)}"
    return client.generic(method, url, json.dumps(row.body), content_type="application/json").status_code


def expected(endpoint: tuple[str, str], row: Row, role: Role, owner: str) -> int | None:
    """The status; None: it is let through, whatever comes of it."""
    if role not in row.allowed:
        found = endpoint in NOT_FOUND_TO_OPERATORS and role == OPERATOR
        return 404 if found else 403
    return 404 if row.is_owned and role.is_of_tenant and owner == "foreign" else None


def test_every_endpoint_is_in_the_table() -> None:
    assert {(method, name) for method, name, _ in endpoints()} == TABLE.keys()


def test_every_row_calls_the_endpoint_that_it_is_of() -> None:
    called = {(method, name): named(row.path) for (method, name), row in TABLE.items()}
    assert {endpoint: name for endpoint, name in called.items() if name != endpoint[1]} == {}


def test_every_operation_of_the_schema_is_in_the_table() -> None:
    told = {(name.split()[0], named(name.split()[1].removeprefix("/"))) for name in operations()}
    assert told == TABLE.keys() - {("GET", "api-docs")}


def named(path: str) -> str | None:
    """The endpoint that answers, whatever its path names."""
    return resolve(f"/api/v1/{re.sub('{[^}]+}', '1', path).split('?')[0]}").url_name


def test_every_view_declares_what_its_requests_need() -> None:
    for _, name, view in endpoints():
        is_for_everyone = HasRole in view.permission_classes
        assert is_for_everyone or isinstance(getattr(view, "access", None), Access), name


def test_a_view_that_declares_nothing_is_refused_to_everybody(db, caplog) -> None:
    class Forgotten(APIView):
        def get(self, _: Any) -> Response:
            return Response("secret")

    request = APIRequestFactory().get("/")
    force_authenticate(request, person("root", Role.ADMINISTRATOR))
    answer = Forgotten.as_view()(request)
    assert (answer.status_code, json.loads(answer.content)["code"]) == (403, "permission_denied")
    assert "Forgotten declares no access" in caplog.text


def test_a_method_that_there_is_not_is_told_so_to_whoever_may_look(db) -> None:
    operator = api_of(person("ada", OPERATOR))
    viewer = api_of(person("eve", VIEWER, Tenant.objects.create(name="Greenhouse")))
    assert operator.delete("/api/v1/partitions").status_code == 405
    assert operator.post("/api/v1/routing").status_code == 405
    assert viewer.post("/api/v1/routing").status_code == 403


@pytest.mark.parametrize("owner", ["own", "foreign"])
@pytest.mark.parametrize("role", list(Role))
def test_each_role_may_what_the_table_says(world: World, role: Role, owner: str) -> None:
    client = api_of(person("asking", role, world.own if role.is_of_tenant else None))
    wrong = []
    for endpoint, row in TABLE.items():
        status, wanted = call(client, endpoint[0], row, world.paths[owner]), expected(endpoint, row, role, owner)
        is_right = status not in (401, 403, 404) and status < 500 if wanted is None else status == wanted
        if not is_right:
            wrong.append((*endpoint, status, wanted))
    assert wrong == []


@pytest.mark.parametrize(("who", "status"), [("stranger", 401), ("somebody without a role", 403)])
def test_nobody_else_gets_anywhere(world: World, who: str, status: int) -> None:
    client = APIClient()
    if who != "stranger":
        client.force_authenticate(User.objects.create_user("guest"))
    answers = {call(client, method, row, world.paths["own"]) for (method, _), row in TABLE.items()}
    assert answers == {status}
