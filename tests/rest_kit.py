"""How every operation of the REST interface is called, for tests that hold all of them to the conventions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any, Final
from uuid import uuid4

from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from queueapi import runtime
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.dead_letters import discard_letters
from queueapi.actions.isolation import approve_request, request_isolation
from queueapi.actions.message_types import Description, create_message_type
from queueapi.actions.messages import PublishedMessage, publish_message
from queueapi.actions.operations import cancel_operation, pause_operation
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queue_ends import drain_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenant_profiles import create_profile
from queueapi.actions.tenant_states import suspend_tenant
from queueapi.actions.tenants import create_tenant
from queueapi.choices import Role
from queueapi.cluster.models import Rebalance, RoutingAcknowledgement
from queueapi.cluster.store import DatabaseStore
from queueapi.models import (
    Alert,
    AlertChannel,
    ApiToken,
    AuditEntry,
    IdempotencyKey,
    IsolationRequest,
    LagCurrent,
    MessageType,
    Operation,
    Replay,
    RequestCurrent,
    Silence,
    Tenant,
    TenantProfile,
)
from tests.alerts import make_alert, make_channel, make_silence
from tests.cluster_kit import FakeCluster, newest_rebalance, partitions_named
from tests.integration.queue_kit import isolated
from tests.integration.replay_kit import ran
from tests.letters import make_letter
from tests.people import PASSWORD, person, token_of
from tests.stored_events import store_events
from workers.operations.runner import run_operation

API: Final = "/api/v1"
SOURCE: Final = 'syntax = "proto3";\npackage shop;\nmessage Order {\n  string id = 1;\n}\n'
MORE: Final = SOURCE.replace("}", "  string note = 2;\n}")


def operations() -> dict[str, dict[str, Any]]:
    """All that the schema tells of, as `POST /queues`."""
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    return {
        f"{method.upper()} {path.removeprefix(API)}": told
        for path, methods in paths.items()
        for method, told in methods.items()
    }


def lists() -> list[str]:
    """The operations that answer with many things, as the schema tells of them: with an array, or with pages."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    shapes = schema["components"]["schemas"]
    found = []
    for name, told in operations().items():
        answer = told["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
        shape = shapes.get(answer.get("$ref", "").rpartition("/")[2], answer)
        if name.startswith("GET ") and (shape.get("type") == "array" or "results" in shape.get("properties", {})):
            found.append(name)
    return found


@dataclass
class World:
    """What operations are called on, made when it is asked for."""

    installation: Any

    @cached_property
    def tenant(self) -> Tenant:
        tenant: Tenant = self.installation.tenant
        return tenant

    @cached_property
    def stored_day(self) -> date:
        """Of which there are events."""
        store_events(today := timezone.now().date(), 3)
        return today

    @cached_property
    def suspended_tenant(self) -> Tenant:
        return suspend_tenant(SYSTEM, create_tenant(SYSTEM, "Foundry"), "unpaid")

    @cached_property
    def shareable(self) -> Any:
        """A queue that tenants may have of their own."""
        return create_queue(SYSTEM, self.queue.tenant, name="Readings", topic="readings", handler="log", partitions=1)

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [{"name": self.shareable.name}]

    @cached_property
    def isolation(self) -> IsolationRequest:
        return request_isolation(SYSTEM, self.tenant, self.asked, "bursts")

    @cached_property
    def own_isolation(self) -> IsolationRequest:
        """One that whoever calls has asked for."""
        asking = Actor("root", User.objects.filter(username="root").first())
        return request_isolation(asking, create_tenant(SYSTEM, "Kiln"), self.asked, "bursts")

    @cached_property
    def failed_isolation(self) -> IsolationRequest:
        asked = request_isolation(SYSTEM, create_tenant(SYSTEM, "Mill"), self.asked, "bursts")
        request = approve_request(SYSTEM, asked)
        cancel_operation(SYSTEM, request.operation_id)
        run_operation(request.operation_id)
        return request

    @cached_property
    def active_isolation(self) -> IsolationRequest:
        tenant = create_tenant(SYSTEM, "Quarry")
        isolated(tenant, self.shareable)
        return IsolationRequest.objects.get(tenant=tenant)

    @cached_property
    def profile(self) -> TenantProfile:
        return create_profile(SYSTEM, name="small")

    @cached_property
    def user(self) -> User:
        return person("ada.l", Role.OPERATOR)

    @cached_property
    def token(self) -> ApiToken:
        return token_of(self.user, ["queues:read"])[0]

    @cached_property
    def message_type(self) -> MessageType:
        description = Description.of({"order.proto": SOURCE})
        return create_message_type(SYSTEM, name="order", message="shop.Order", description=description)

    @cached_property
    def stored(self) -> PublishedMessage:
        return publish_message(self.queue, self.tenant, uuid4(), b"{}")

    @cached_property
    def group(self) -> str:
        """One that has done the message that is stored."""
        place = self.queue.partition_info(self.stored.partition).place
        runtime.provider().admin().alter_group_offsets("reports", {place: 1})
        return "reports"

    @cached_property
    def queue(self) -> Any:
        return self.installation.queue

    @cached_property
    def paused_queue(self) -> Any:
        pause_queue(SYSTEM, self.queue, reason="billing is away")
        return self.queue

    @cached_property
    def drained_queue(self) -> Any:
        drain_queue(SYSTEM, self.queue)
        return self.queue

    @cached_property
    def letter(self) -> Any:
        return make_letter(self.queue)

    @cached_property
    def discarded(self) -> Any:
        letter = make_letter(self.queue)
        discard_letters(SYSTEM, [letter.id], "test data")
        return letter

    @cached_property
    def released(self) -> Any:
        """One that was sent, and whose replay is over."""
        letter = make_letter(self.queue)
        ran(start_replay(SYSTEM, [letter.id]))
        return letter

    @cached_property
    def replay(self) -> Replay:
        return start_replay(SYSTEM, [make_letter(self.queue).id])

    @cached_property
    def paused_replay(self) -> Replay:
        pause_operation(SYSTEM, self.replay.operation_id)
        return self.replay

    @cached_property
    def operation(self) -> Operation:
        return Operation.objects.create(kind="count", summary="Count", total=1)

    @cached_property
    def paused_operation(self) -> Operation:
        return pause_operation(SYSTEM, self.operation.id)

    @cached_property
    def cluster(self) -> FakeCluster:
        cluster = FakeCluster(partitions_named("Telemetry", "telemetry", 3))
        cluster.join("a", "b.example")
        cluster.settle()
        return cluster

    @cached_property
    def rebalance(self) -> Rebalance:
        self.cluster.join("c")
        self.cluster.step()
        return newest_rebalance()

    @cached_property
    def draining(self) -> str:
        assert self.cluster
        DatabaseStore().set_draining("a", draining=True)
        return "a"

    @cached_property
    def lag(self) -> LagCurrent:
        told = {"topic": "telemetry.0", "consumer_group": "c", "end_offset": 2, "lag_messages": 1}
        return LagCurrent.objects.create(queue=self.queue, partition=0, as_of=timezone.now(), **told)

    @cached_property
    def requests(self) -> RequestCurrent:
        told = {"service_id": "shop-1", "request_topic": "prices", "pending": 3, "as_of": timezone.now()}
        return RequestCurrent.objects.create(**told)

    @cached_property
    def tomorrow(self) -> str:
        return (timezone.now() + timedelta(days=1)).isoformat()

    @cached_property
    def channel(self) -> AlertChannel:
        return make_channel()

    @cached_property
    def alert(self) -> Alert:
        return make_alert(self.queue)

    @cached_property
    def silence(self) -> Silence:
        return make_silence(self.queue)

    @cached_property
    def message(self) -> dict[str, Any]:
        return {"tenant": str(self.installation.tenant.id), "entity": str(uuid4()), "payload": {"temperature": 21}}


@dataclass(frozen=True)
class Call:
    """`path` is made of the world, and so is the body; None: it takes none."""

    path: Callable[[World], str]
    body: Callable[[World], dict[str, Any]] | None = None
    # Whether it answers with one thing, or with pages.
    is_thing: bool = False
    is_list: bool = False
    # Whether it changes what its path is, without any name in it: that has an ETag.
    is_whole: bool = False
    # Whether its answer is given once, and kept nowhere.
    is_secret: bool = False


def a_list(path: str) -> Call:
    return Call(lambda world: path, is_list=True)


def a_thing(path: Callable[[World], str]) -> Call:
    return Call(path, is_thing=True)


def _letters(letter: Callable[[World], Any]) -> Callable[[World], dict[str, Any]]:
    return lambda world: {"letters": [str(letter(world).id)], "reason": "test data"}


def _with(**body: Any) -> Callable[[World], dict[str, Any]]:
    return lambda world: dict(body)


TABLE: Final[Mapping[str, Call]] = {
    "GET /tenants": a_list("/tenants"),
    "POST /tenants": Call(lambda world: "/tenants", _with(name="Acme")),
    "GET /tenants/{id}": a_thing(lambda world: f"/tenants/{world.tenant.id}"),
    "PATCH /tenants/{id}": Call(lambda world: f"/tenants/{world.tenant.id}", _with(messages_per_s=5)),
    "DELETE /tenants/{id}": Call(lambda world: f"/tenants/{world.tenant.id}"),
    "POST /tenants/{id}/suspend": Call(lambda world: f"/tenants/{world.tenant.id}/suspend", _with(reason="unpaid")),
    "POST /tenants/{id}/resume": Call(lambda world: f"/tenants/{world.suspended_tenant.id}/resume"),
    "POST /tenants/{id}/isolate": Call(
        lambda world: f"/tenants/{world.tenant.id}/isolate",
        lambda world: {"queues": world.asked, "reason": "bursts"},
    ),
    "GET /isolation-requests": a_list("/isolation-requests"),
    "POST /isolation-requests": Call(
        lambda world: "/isolation-requests",
        lambda world: {"tenant": str(world.tenant.id), "queues": world.asked, "reason": "bursts"},
    ),
    "GET /isolation-requests/{id}": a_thing(lambda world: f"/isolation-requests/{world.isolation.id}"),
    "PATCH /isolation-requests/{id}": Call(
        lambda world: f"/isolation-requests/{world.isolation.id}", _with(reason="bursts in May")
    ),
    "POST /isolation-requests/{id}/approve": Call(
        lambda world: f"/isolation-requests/{world.isolation.id}/approve", _with(comment="fine")
    ),
    "POST /isolation-requests/{id}/refuse": Call(
        lambda world: f"/isolation-requests/{world.isolation.id}/refuse", _with(comment="not now")
    ),
    "POST /isolation-requests/{id}/withdraw": Call(
        lambda world: f"/isolation-requests/{world.own_isolation.id}/withdraw"
    ),
    "POST /isolation-requests/{id}/comment": Call(
        lambda world: f"/isolation-requests/{world.isolation.id}/comment", _with(text="why so many?")
    ),
    "POST /isolation-requests/{id}/retry": Call(lambda world: f"/isolation-requests/{world.failed_isolation.id}/retry"),
    "POST /isolation-requests/{id}/retire": Call(
        lambda world: f"/isolation-requests/{world.active_isolation.id}/retire", _with(discard_letters=True)
    ),
    "GET /tenant-profiles": a_list("/tenant-profiles"),
    "POST /tenant-profiles": Call(lambda world: "/tenant-profiles", _with(name="large")),
    "GET /tenant-profiles/{id}": a_thing(lambda world: f"/tenant-profiles/{world.profile.id}"),
    "PATCH /tenant-profiles/{id}": Call(lambda world: f"/tenant-profiles/{world.profile.id}", _with(max_queues=2)),
    "DELETE /tenant-profiles/{id}": Call(lambda world: f"/tenant-profiles/{world.profile.id}"),
    "GET /users": a_list("/users"),
    "POST /users": Call(lambda world: "/users", _with(name="eve", password=PASSWORD, role="operator")),
    "GET /users/{id}": a_thing(lambda world: f"/users/{world.user.id}"),
    "PUT /users/{id}/role": Call(lambda world: f"/users/{world.user.id}/role", _with(role="auditor")),
    "PUT /users/{id}/password": Call(lambda world: f"/users/{world.user.id}/password", _with(password=PASSWORD)),
    "POST /users/{id}/deactivate": Call(lambda world: f"/users/{world.user.id}/deactivate"),
    "POST /users/{id}/activate": Call(lambda world: f"/users/{world.user.id}/activate"),
    "GET /tokens": a_list("/tokens"),
    "POST /tokens": Call(lambda world: "/tokens", _with(name="deploy", scopes=["queues:read"]), is_secret=True),
    "GET /tokens/{id}": a_thing(lambda world: f"/tokens/{world.token.id}"),
    "POST /tokens/{id}/revoke": Call(lambda world: f"/tokens/{world.token.id}/revoke"),
    "GET /me": a_thing(lambda world: "/me"),
    "PUT /me/password": Call(lambda world: "/me/password", _with(current="secret", password=PASSWORD)),
    "GET /audit": a_list("/audit"),
    "GET /audit/{id}": a_thing(lambda world: f"/audit/{AuditEntry.objects.latest('id').id}"),
    "GET /audit/export.csv": Call(lambda world: "/audit/export.csv"),
    "GET /audit/export.jsonl": Call(lambda world: "/audit/export.jsonl"),
    "GET /topics": Call(lambda world: "/topics"),
    "GET /topics/{topic}": a_thing(lambda world: "/topics/telemetry.0"),
    "GET /groups": Call(lambda world: "/groups"),
    "GET /groups/{group}": a_thing(lambda world: f"/groups/{world.group}"),
    "POST /groups/{group}/offsets": Call(lambda world: f"/groups/{world.group}/offsets", _with(to="shift", count=-1)),
    "GET /message-types": a_list("/message-types"),
    "POST /message-types": Call(
        lambda world: "/message-types", _with(name="bill", message="shop.Order", files={"order.proto": SOURCE})
    ),
    "GET /message-types/{name}": a_thing(lambda world: f"/message-types/{world.message_type.name}"),
    "PATCH /message-types/{name}": Call(
        lambda world: f"/message-types/{world.message_type.name}", _with(files={"order.proto": MORE}, topics=["orders"])
    ),
    "DELETE /message-types/{name}": Call(lambda world: f"/message-types/{world.message_type.name}"),
    "GET /queues": a_list("/queues"),
    "POST /queues": Call(lambda world: "/queues", _with(name="Orders", topic="orders", handler="log")),
    "GET /queues/{queue}": a_thing(lambda world: f"/queues/{world.queue.id}"),
    "PATCH /queues/{queue}": Call(lambda world: "/queues/telemetry", _with(retries=7)),
    "GET /queues/{queue}/consumers": Call(lambda world: "/queues/telemetry/consumers"),
    "GET /queues/{queue}/lag": a_thing(lambda world: f"/queues/{world.lag.queue.name}/lag"),
    "GET /queues/{queue}/lag/history": Call(lambda world: "/queues/telemetry/lag/history"),
    "GET /queues/{queue}/processing": Call(lambda world: "/queues/telemetry/processing"),
    "GET /queues/{queue}/heat": a_thing(lambda world: "/queues/telemetry/heat"),
    "GET /queues/{queue}/messages": Call(lambda world: "/queues/telemetry/messages"),
    "GET /queues/{queue}/messages/{partition}/{offset}": a_thing(
        lambda world: f"/queues/telemetry/messages/{world.stored.partition}/{world.stored.offset}"
    ),
    "GET /queues/{queue}/messages/tail": Call(lambda world: "/queues/telemetry/messages/tail"),
    "POST /queues/{queue}/messages/batch": Call(
        lambda world: "/queues/telemetry/messages/batch", lambda world: {"messages": [world.message, world.message]}
    ),
    "POST /queues/{queue}/messages": Call(lambda world: "/queues/telemetry/messages", lambda world: world.message),
    "DELETE /queues/{queue}": Call(lambda world: "/queues/telemetry"),
    "POST /queues/{queue}/drain": Call(lambda world: "/queues/telemetry/drain", _with()),
    "POST /queues/{queue}/resize": Call(lambda world: "/queues/telemetry/resize", _with(partitions=7)),
    "POST /queues/{queue}/activate": Call(lambda world: f"/queues/{world.drained_queue.name}/activate"),
    "POST /queues/{queue}/pause": Call(lambda world: "/queues/telemetry/pause", _with(reason="too noisy")),
    "POST /queues/{queue}/resume": Call(lambda world: f"/queues/{world.paused_queue.name}/resume", _with()),
    "GET /dead-letters": a_list("/dead-letters"),
    "GET /dead-letters/quarantined": a_list("/dead-letters/quarantined"),
    "GET /dead-letters/{id}": a_thing(lambda world: f"/dead-letters/{world.letter.id}"),
    "POST /dead-letters/{id}/replay": Call(lambda world: f"/dead-letters/{world.letter.id}/replay"),
    "POST /dead-letters/discard": Call(lambda world: "/dead-letters/discard", _letters(lambda world: world.letter)),
    "POST /dead-letters/restore": Call(lambda world: "/dead-letters/restore", _letters(lambda world: world.discarded)),
    "POST /dead-letters/release": Call(lambda world: "/dead-letters/release", _letters(lambda world: world.released)),
    "PUT /dead-letters/{id}/message": Call(
        lambda world: f"/dead-letters/{world.letter.id}/message", _with(headers={}, payload={"temperature": 21})
    ),
    "DELETE /dead-letters/{id}/message": Call(lambda world: f"/dead-letters/{world.letter.id}/message", _with()),
    "POST /dead-letters/{id}/note": Call(lambda world: f"/dead-letters/{world.letter.id}/note", _with(note="told")),
    "GET /dead-letter-groups": a_list("/dead-letter-groups"),
    "GET /dead-letter-groups/{id}": a_thing(lambda world: f"/dead-letter-groups/{world.letter.group_id}"),
    "GET /dead-letter-groups/{id}/trend": Call(lambda world: f"/dead-letter-groups/{world.letter.group_id}/trend"),
    "POST /dead-letter-groups/{id}/note": Call(
        lambda world: f"/dead-letter-groups/{world.letter.group_id}/note", _with(note="ticket 4711")
    ),
    "POST /dead-letter-groups/{id}/discard": Call(
        lambda world: f"/dead-letter-groups/{world.letter.group_id}/discard", _with(reason="known")
    ),
    "POST /dead-letter-groups/{id}/restore": Call(
        lambda world: f"/dead-letter-groups/{world.discarded.group_id}/restore", _with(reason="known")
    ),
    "POST /dead-letter-groups/{id}/release": Call(
        lambda world: f"/dead-letter-groups/{world.released.group_id}/release", _with(reason="emptied")
    ),
    "GET /replays": a_list("/replays"),
    "POST /replays": Call(lambda world: "/replays", lambda world: {"letters": [str(world.letter.id)]}),
    "GET /replays/{id}": a_thing(lambda world: f"/replays/{world.replay.id}"),
    "GET /replays/{id}/items": Call(lambda world: f"/replays/{world.replay.id}/items", is_list=True),
    "POST /replays/{id}/pause": Call(lambda world: f"/replays/{world.replay.id}/pause"),
    "POST /replays/{id}/resume": Call(lambda world: f"/replays/{world.paused_replay.id}/resume"),
    "POST /replays/{id}/cancel": Call(lambda world: f"/replays/{world.replay.id}/cancel"),
    "GET /operations": a_list("/operations"),
    "GET /operations/{id}": a_thing(lambda world: f"/operations/{world.operation.id}"),
    "POST /operations/{id}/cancel": Call(lambda world: f"/operations/{world.operation.id}/cancel"),
    "POST /operations/{id}/pause": Call(lambda world: f"/operations/{world.operation.id}/pause"),
    "POST /operations/{id}/resume": Call(lambda world: f"/operations/{world.paused_operation.id}/resume"),
    "GET /lag": a_list("/lag"),
    "GET /lag/{id}": a_thing(lambda world: f"/lag/{world.lag.pk}"),
    "GET /lag/totals": a_thing(lambda world: "/lag/totals"),
    "GET /lag/queues": a_list("/lag/queues"),
    "GET /pending-requests": a_list("/pending-requests"),
    "GET /pending-requests/{id}": a_thing(lambda world: f"/pending-requests/{world.requests.pk}"),
    "GET /pending-requests/totals": a_thing(lambda world: "/pending-requests/totals"),
    "GET /pending-requests/history": a_list("/pending-requests/history"),
    "GET /usage": a_list("/usage"),
    "GET /usage/totals": a_list("/usage/totals"),
    "GET /usage/export.csv": Call(lambda world: "/usage/export.csv"),
    "GET /pipeline": a_thing(lambda world: "/pipeline"),
    "POST /pipeline/back-fills": Call(
        lambda world: "/pipeline/back-fills", lambda world: {"first": world.stored_day.isoformat()}
    ),
    "GET /alerts": a_list("/alerts"),
    "GET /alerts/counts": a_thing(lambda world: "/alerts/counts"),
    "GET /alerts/{id}": a_thing(lambda world: f"/alerts/{world.alert.id}"),
    "POST /alerts/{id}/acknowledge": Call(
        lambda world: f"/alerts/{world.alert.id}/acknowledge", _with(note="looking at it")
    ),
    "POST /alerts/{id}/silence": Call(
        lambda world: f"/alerts/{world.alert.id}/silence",
        lambda world: {"until": world.tomorrow, "reason": "an upgrade"},
    ),
    "GET /alert-rules": a_list("/alert-rules"),
    "POST /alert-rules": Call(
        lambda world: "/alert-rules",
        lambda world: {
            "name": "Slow",
            "metric": "lag_seconds",
            "threshold": 60,
            "queue": str(world.queue.id),
            "channels": [str(world.channel.id)],
        },
    ),
    "GET /alert-rules/{id}": a_thing(lambda world: f"/alert-rules/{world.alert.rule_id}"),
    "PATCH /alert-rules/{id}": Call(lambda world: f"/alert-rules/{world.alert.rule_id}", _with(threshold=200)),
    "DELETE /alert-rules/{id}": Call(lambda world: f"/alert-rules/{world.alert.rule_id}"),
    "GET /alert-channels": a_list("/alert-channels"),
    "POST /alert-channels": Call(
        lambda world: "/alert-channels", _with(name="Ops", kind="email", options={"recipients": ["ops@example.org"]})
    ),
    "GET /alert-channels/{id}": a_thing(lambda world: f"/alert-channels/{world.channel.id}"),
    "PATCH /alert-channels/{id}": Call(lambda world: f"/alert-channels/{world.channel.id}", _with(enabled=False)),
    "DELETE /alert-channels/{id}": Call(lambda world: f"/alert-channels/{world.channel.id}"),
    "POST /alert-channels/{id}/test": Call(lambda world: f"/alert-channels/{world.channel.id}/test"),
    "GET /alert-channels/{id}/deliveries": Call(
        lambda world: f"/alert-channels/{world.channel.id}/deliveries", is_list=True
    ),
    "GET /silences": a_list("/silences"),
    "POST /silences": Call(
        lambda world: "/silences",
        lambda world: {"queue": str(world.queue.id), "until": world.tomorrow, "reason": "an upgrade"},
    ),
    "GET /silences/{id}": a_thing(lambda world: f"/silences/{world.silence.id}"),
    "DELETE /silences/{id}": Call(lambda world: f"/silences/{world.silence.id}"),
    "GET /services": a_list("/services"),
    "GET /services/{service_id}": a_thing(lambda world: f"/services/{world.cluster and 'b.example'}"),
    "POST /services/{service_id}/drain": Call(lambda world: f"/services/{world.cluster and 'b.example'}/drain"),
    "POST /services/{service_id}/undrain": Call(lambda world: f"/services/{world.draining}/undrain"),
    "GET /partitions": a_list("/partitions"),
    "GET /partitions/resolve": a_thing(lambda world: f"/partitions/resolve?queue=telemetry&entity={world.tenant.id}"),
    "GET /partitions/{name}": a_thing(lambda world: f"/partitions/{world.cluster and 'telemetry.0'}"),
    "GET /rebalances": a_list("/rebalances"),
    "POST /rebalances": Call(
        lambda world: "/rebalances", lambda world: {"reason": "new disk", "leaving": list(world.cluster.members)[:1]}
    ),
    "GET /rebalances/{id}": a_thing(lambda world: f"/rebalances/{world.rebalance.id}"),
    "POST /rebalances/{id}/cancel": Call(lambda world: f"/rebalances/{world.rebalance.id}/cancel"),
    "GET /routing": a_thing(lambda world: "/routing"),
    "GET /health": a_thing(lambda world: "/health"),
    "GET /version": a_thing(lambda world: "/version"),
    "GET /configuration": a_thing(lambda world: "/configuration"),
    "POST /configuration": Call(
        lambda world: "/configuration",
        lambda world: {"format": 1, "tenants": [{"name": world.tenant.name, "messages_per_s": 7}]},
        is_whole=True,
    ),
    "GET /schema": Call(lambda world: "/schema"),
}


@dataclass
class Caller:
    """One operation, called on a world of its own."""

    client: Any
    name: str
    world: World
    call: Call = field(init=False)

    def __post_init__(self) -> None:
        self.call = TABLE[self.name]
        self.method = self.name.split()[0].lower()
        self.path = API + self.call.path(self.world)
        self.body = self.call.body(self.world) if self.call.body else None

    @property
    def thing(self) -> str:
        """What its ETag is of: all up to the first name or id."""
        if self.call.is_whole:
            return self.path
        parts = self.name.split()[1].split("/")
        length = next(number for number, part in enumerate(parts, 1) if part.startswith("{"))
        return API + "/".join(self.path.removeprefix(API).split("/")[:length])

    def __call__(self, query: str = "", **options: Any) -> Any:
        body = options.pop("body", self.body)
        query = query.replace("?", "&") if "?" in self.path else query
        return getattr(self.client, self.method)(f"{self.path}{query}", body, **options)


def snapshot(world: World) -> dict[str, Any]:
    """All that there is: rows of both databases, topics and what is in them, tasks that were sent. Not the keys of
    requests, nor what producers acknowledge in their own time."""
    models = [User, *apps.get_app_config("queueapi").get_models(), *apps.get_app_config("cluster").get_models()]
    rows = {
        model.__name__: serializers.serialize("json", model.objects.order_by("pk"))
        for model in models
        if model not in (IdempotencyKey, RoutingAcknowledgement)
    }
    admin = runtime.provider().admin()
    tasks = world.installation.folder / "celery" / "messages"
    return {
        **rows,
        "topics": sorted(admin.topics()),
        "commits": {
            group: sorted(map(str, found.items()))
            for group, found in admin.committed_offsets(dict.fromkeys(admin.groups())).items()
        },
        "offsets": {str(place): end for place, end in admin.end_offsets(_places(world)).items()},
        "tasks": sorted(path.name for path in tasks.rglob("*")),
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [name for name in before if before[name] != after[name]]


def messages_in(world: World) -> int:
    """How many its queue has got."""
    return sum(runtime.provider().admin().end_offsets(_places(world)).values())


def _places(world: World) -> list[Any]:
    return [info.place for info in world.queue.partition_infos()]
