"""Queues by name as a tenant sees them, where entities' messages go, and which release answers."""

import tomllib
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM
from queueapi.actions.messages import publish_message
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.choices import Role
from queueapi.cluster.models import Partition
from queueapi.cluster.store import DatabaseStore
from queueapi.models import Queue
from queueapi.version import VERSION
from queuecore.topics import SYSTEM_TENANT
from tests.people import api_of, person
from tests.rest_kit import operations

QUEUES, RESOLVE = "/api/v1/queues", "/api/v1/partitions/resolve"
DEVICE = "784f394c-42b6-435a-983c-b7beff2784f9"


@pytest.fixture
def world(installation) -> SimpleNamespace:
    """A queue that all share, and two tenants that each have one of the same name."""
    foundry = create_tenant(SYSTEM, "Foundry")
    queues = {
        tenant.name: create_queue(SYSTEM, tenant, name="Shop", topic="own", handler="log")
        for tenant in (installation.tenant, foundry)
    }
    # After them: once it is there, tenants are isolated from it instead.
    shared = create_queue(SYSTEM, installation.queue.tenant, name="Shop", topic="shop", handler="log")
    return SimpleNamespace(shared=shared, own=installation.tenant, foundry=foundry, queues=queues)


@pytest.fixture
def api(world) -> APIClient:
    return api_of(person("root", Role.ADMINISTRATOR))


# --- tenant=


def test_a_name_is_looked_up_as_the_tenant_sees_it_that_is_named(api, world) -> None:
    found = {named: api.get(f"{QUEUES}/shop", {"tenant": named} if named else {}).json()["id"] for named in
             ("", "FOUNDRY", str(world.own.id), "System")}  # fmt: skip
    assert found == {
        "": str(world.shared.id),
        "FOUNDRY": str(world.queues["Foundry"].id),
        str(world.own.id): str(world.queues["Greenhouse"].id),
        "System": str(world.shared.id),
    }
    create_queue(SYSTEM, world.shared.tenant, name="Shared", topic="shared", handler="log")
    assert api.get(f"{QUEUES}/shared", {"tenant": "Foundry"}).json()["name"] == "Shared"


def test_it_is_so_for_every_method(api, world) -> None:
    own = world.queues["Foundry"]
    assert api.patch(f"{QUEUES}/shop?tenant=Foundry", {"retries": 7}).json()["id"] == str(own.id)
    assert api.post(f"{QUEUES}/shop/pause?tenant=Foundry", {"reason": "x"}).json()["id"] == str(own.id)
    assert api.post(f"{QUEUES}/shop/drain?tenant=Foundry&dry_run=true", {}).json()["queue"] == str(own.id)
    assert api.delete(f"{QUEUES}/shop?tenant=Foundry&dry_run=true").json()["queue"] == str(own.id)
    assert Queue.objects.get(pk=world.shared.pk).retries == world.shared.retries
    tag = api.get(f"{QUEUES}/shop?tenant=Foundry")["ETag"]
    stale = api.patch(f"{QUEUES}/shop", {"retries": 8}, headers={"If-Match": tag})
    assert stale.status_code == 412


def test_messages_are_those_of_the_tenant_in_the_queue_that_it_sees(api, world) -> None:
    publish_message(world.queues["Foundry"], world.foundry, uuid4(), b"{}")
    page = api.get(f"{QUEUES}/shop/messages", {"tenant": str(world.foundry.id)}).json()
    assert [one["tenant"] for one in page["results"]] == [str(world.foundry.id)]
    gone = api.get(f"{QUEUES}/shop/messages", {"tenant": str(uuid4())})
    assert (gone.status_code, gone.json()["results"]) == (200, [])


@pytest.mark.parametrize("named", ["Nobody", "a%00b", "00000000-0000-0000-0000-000000000000"])
def test_a_tenant_that_there_is_not_is_not_found(api, world, named) -> None:
    assert api.get(f"{QUEUES}/shop?tenant={named}").status_code == 404


def test_a_queue_by_its_id_has_to_be_one_that_the_tenant_sees(api, world) -> None:
    own, other = world.queues["Foundry"].id, world.queues["Greenhouse"].id
    statuses = [api.get(f"{QUEUES}/{one}?tenant=Foundry").status_code for one in (own, other, world.shared.id)]
    assert statuses == [200, 404, 200]


def test_to_a_tenants_people_there_is_no_other_tenant(world) -> None:
    ada = api_of(person("ada", Role.TENANT_ADMIN, world.own))
    assert ada.get(f"{QUEUES}/shop?tenant=greenhouse").json()["id"] == str(world.queues["Greenhouse"].id)
    answers = [ada.get(f"{QUEUES}/shop?tenant={named}") for named in ("Foundry", world.foundry.id, "Nobody")]
    assert [(answer.status_code, answer.json()["detail"]) for answer in answers] == [
        (404, "there is no such thing here")
    ] * 3


def test_where_a_queue_is_drained_to_is_named_in_the_same_way(api, world) -> None:
    spare = create_queue(SYSTEM, world.foundry, name="Spare", topic="spare", handler="log")
    drain = f"{QUEUES}/shop/drain?dry_run=true"
    assert api.post(f"{drain}&tenant=Foundry", {"to": "spare"}).json()["why_not"] == []
    assert "there is no queue 'spare'" in str(api.post(drain, {"to": "spare"}).json()["errors"]["to"])
    moved = api.delete(f"{QUEUES}/shop?tenant=Foundry&dry_run=true&move_to=spare")
    assert moved.json()["why_not"] == []
    ada = api_of(person("ada", Role.TENANT_ADMIN, world.own))
    answers = [ada.post(drain, {"to": str(named)}).json()["errors"]["to"] for named in (spare.id, uuid4())]
    assert [why[0].split(";")[0].split("'")[0] for why in answers] == ["there is no queue "] * 2


def test_the_schema_tells_of_it_wherever_a_path_has_a_queue() -> None:
    told = {name: {one["name"] for one in one_told["parameters"]} for name, one_told in operations().items()}
    assert [name for name, names in told.items() if "/queues/{queue}" in name and "tenant" not in names] == []
    assert "tenant" in told["GET /partitions/resolve"]


# --- resolve


def test_an_entity_is_resolved_by_the_latest_routing_version(api, world) -> None:
    version = DatabaseStore().routing_version()
    place = api.get(RESOLVE, {"queue": "shop", "entity": DEVICE}).json()
    assert place == {
        "queue": "shop",
        "tenant": str(SYSTEM_TENANT),
        "entity": DEVICE,
        "topic": "shop",
        "partition": 2,
        "full_topic_name": "shop.2",
        "hash_function": "murmur3_128",
        "hash": -1365553268,
        "routing_version": version,
        "owner": None,
        "epoch": None,
    }
    own = api.get(RESOLVE, {"queue": "Shop", "entity": DEVICE, "tenant": "Foundry"}).json()
    assert (own["tenant"], own["topic"]) == (str(world.foundry.id), "own")
    assert own["full_topic_name"] == f"own.isolated.{world.foundry.id}.2"
    by_id = api.get(RESOLVE, {"queue": str(world.queues["Foundry"].id), "entity": DEVICE}).json()
    assert by_id["full_topic_name"] == own["full_topic_name"]


def test_who_consumes_it_is_told_with_the_epoch(api, world) -> None:
    partition = Partition.objects.create(
        name="shop.2", service_type="TB_RULE_ENGINE", queue="Shop", number=2, tenant=SYSTEM_TENANT
    )
    ask = {"queue": "shop", "entity": DEVICE}
    assert [api.get(RESOLVE, ask).json()[name] for name in ("owner", "epoch")] == [None, None]
    Partition.objects.filter(pk=partition.pk).update(owner="host-1", epoch=7)
    assert [api.get(RESOLVE, ask).json()[name] for name in ("owner", "epoch")] == ["host-1", 7]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"queue": "shop"}, 400),
        ({"entity": "x"}, 400),
        ({"queue": "shopp", "entity": "x"}, 404),
        ({"queue": "a\0b", "entity": "x"}, 404),
        ({"queue": str(uuid4()), "entity": "x"}, 404),
        ({"queue": "shop", "entity": "x", "tenant": "Nobody"}, 404),
    ],
)
def test_what_cannot_be_resolved_is_refused(api, query, status) -> None:
    assert api.get(RESOLVE, query).status_code == status


def test_a_misspelt_queue_is_answered_with_the_right_one(api, world) -> None:
    problem = api.get(RESOLVE, {"queue": "shopp", "entity": "x"}).json()
    assert "did you mean 'shop'?" in problem["detail"]


# --- version


def test_the_version_is_that_of_the_release(world) -> None:
    viewer = api_of(person("eve", Role.TENANT_VIEWER, world.own))
    assert viewer.get("/api/v1/version").json() == {
        "name": "Switchyard",
        "version": VERSION,
        "api": "v1",
        "provider": "log",
        "database": "sqlite",
        "mode": "local",
    }
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert pyproject["project"]["version"] == VERSION
