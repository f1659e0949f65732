"""What a tenant's people see of queues that all share, and of each other: their own things, and nothing else."""

import base64
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.dead_letters import discard_letters
from queueapi.actions.letter_edits import message_of, note_letter
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import create_tenant
from queueapi.choices import Role
from queueapi.models import AuditEntry, ConsumerStanding, Operation, Queue
from queuecore.messages import PRODUCER_ID
from tests.integration.queue_kit import isolated
from tests.letters import make_letter, states_of
from tests.people import api_of, person

QUEUES, LETTERS, REPLAYS = "/api/v1/queues", "/api/v1/dead-letters", "/api/v1/replays"


@pytest.fixture
def world(installation) -> SimpleNamespace:
    """Two tenants, each with a queue of its own of the same name, and letters in the one that all share."""
    other = create_tenant(SYSTEM, "Foundry")
    letters = {
        "own": make_letter(installation.queue, tenant=installation.tenant),
        "foreign": make_letter(installation.queue, tenant=other),
        "nobodys": make_letter(installation.queue),
    }
    return SimpleNamespace(
        tenant=installation.tenant,
        other=other,
        shared=installation.queue,
        queue=create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log"),
        foreign=create_queue(SYSTEM, other, name="Own", topic="own", handler="log"),
        letters={name: letter.id for name, letter in letters.items()},
    )


@pytest.fixture
def api(world) -> APIClient:
    return api_of(person("ada", Role.TENANT_ADMIN, world.tenant))


def ids(answer) -> set[str]:
    return {row["id"] for row in answer.json()["results"]}


def test_queues_are_the_tenants_own_and_the_systems(api, world) -> None:
    assert ids(api.get(QUEUES)) == {str(world.queue.id), str(world.shared.id)}
    assert ids(api.get(QUEUES, {"tenant": str(world.other.id)})) == set()
    assert ids(api.get("/api/v1/tenants")) == {str(world.tenant.id)}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("queues", "tenant"),
        ("lag", "queue"),
        ("dead-letter-groups", "queue"),
        ("alerts", "tenant"),
        ("alerts", "queue"),
    ],
)
def test_a_filter_tells_nobody_whether_something_exists(api, world, path, name) -> None:
    foreign = world.other.id if name == "tenant" else world.foreign.id
    answers = [api.get(f"/api/v1/{path}", {name: str(asked)}) for asked in (foreign, uuid4())]
    assert [(answer.status_code, answer.json()["results"]) for answer in answers] == [(200, [])] * 2


def test_a_name_means_the_own_queue_and_then_the_systems(api, world) -> None:
    assert api.get(f"{QUEUES}/OWN").json()["id"] == str(world.queue.id)
    assert api.get(f"{QUEUES}/telemetry").json()["id"] == str(world.shared.id)
    shadow = isolated(world.tenant, world.shared)
    assert api.get(f"{QUEUES}/telemetry").json()["id"] == str(shadow.id)
    assert api_of(person("root", Role.OPERATOR)).get(f"{QUEUES}/own").status_code == 404


def test_a_shared_queue_is_seen_without_what_is_the_others(api, world) -> None:
    for tenant in (world.tenant, world.other, None):
        pause_queue(SYSTEM, world.shared, tenant=tenant, reason="x")
    Queue.objects.filter(pk=world.shared.pk).update(handler_options={"url": "http://internal.example"})
    counts = {str(world.tenant.id): {"total": 1}, str(world.other.id): {"total": 2}, "": {"total": 3}}
    now = timezone.now()
    ConsumerStanding.objects.create(
        service_id="a", queue=world.shared, consumer_group="g", state="running", since=now, as_of=now, tenants=counts
    )
    shown = api.get(f"{QUEUES}/telemetry").json()
    assert {pause["tenant"] for pause in shown["pauses"]} == {None, str(world.tenant.id)}
    assert shown["handler_options"] == {}
    [consumer] = api.get(f"{QUEUES}/telemetry/consumers").json()
    assert consumer["tenants"] == {str(world.tenant.id): {"total": 1}}


def test_a_shared_queue_is_used_and_not_changed(api, world) -> None:
    answer = api.post(f"{QUEUES}/telemetry/pause", {"reason": "x"})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert "which tenants use and cannot change" in answer.json()["detail"]
    message = {"tenant": str(world.tenant.id), "entity": str(uuid4()), "payload": 1}
    assert api.post(f"{QUEUES}/telemetry/messages", message).status_code == 201


@pytest.mark.parametrize(("question", "status"), [("", 201), ("?dry_run=true", 200)])
def test_whose_a_message_is_need_not_be_said_by_a_tenants_people(api, world, question, status) -> None:
    message = {"entity": str(uuid4()), "payload": 1}
    # One that names it, for what is read one by one as soon as something is unusual.
    unusual = {**message, "tenant": str(world.tenant.id), "payload_base64": "%"}
    assert api.post(f"{QUEUES}/telemetry/messages{question}", message).status_code == status
    batch = f"{QUEUES}/telemetry/messages/batch{question}"
    assert api.post(batch, {"messages": [message, message]}).status_code == status
    assert list(api.post(batch, {"messages": [message, unusual]}).json()["errors"]["messages"]) == ["1"]
    stored = api_of(person("root", Role.ADMINISTRATOR)).get(f"{QUEUES}/telemetry/messages").json()["results"]
    assert [row["tenant"] for row in stored] == [str(world.tenant.id)] * (0 if question else 3)


def test_who_belongs_to_no_tenant_says_whose_a_message_is(installation) -> None:
    message = {"entity": str(uuid4()), "payload": 1}
    root = api_of(person("root", Role.ADMINISTRATOR))
    answer = root.post(f"{QUEUES}/telemetry/messages", message)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["tenant"])
    assert "you belong to no tenant" in str(answer.json()["errors"])
    answer = root.post(f"{QUEUES}/telemetry/messages/batch", {"messages": [message]})
    assert answer.json()["errors"] == {"messages": {"0": ["tenant: give a UUID"]}}


@pytest.mark.parametrize("named", ["foreign", "nobodys"])
def test_nobody_sends_messages_of_another_tenant(api, world, named) -> None:
    tenant = world.other.id if named == "foreign" else uuid4()
    answer = api.post(f"{QUEUES}/telemetry/messages", {"tenant": str(tenant), "entity": str(uuid4()), "payload": 1})
    assert answer.status_code == 400
    assert answer.json()["errors"]["tenant"] == [f'Invalid pk "{tenant}" - object does not exist.']


def test_a_tenant_pauses_its_own_queue_and_learns_no_names(api, world) -> None:
    assert api.post(f"{QUEUES}/own/pause", {"reason": "x"}).status_code == 200
    answer = api.post(f"{QUEUES}/own/pause", {"reason": "x", "tenant": str(world.other.id)})
    assert answer.status_code == 400
    assert "Foundry" not in answer.content.decode()
    entry = AuditEntry.objects.get(action="pause")
    assert (entry.actor_name, entry.tenant_id) == ("ada", world.tenant.id)


def test_letters_are_the_tenants_whose_messages_they_were(api, world) -> None:
    assert ids(api.get(LETTERS)) == {str(world.letters["own"])}
    assert ids(api.get(LETTERS, {"text": "too hot"})) == {str(world.letters["own"])}
    assert ids(api.get(LETTERS, {"tenant": str(world.other.id)})) == set()
    for name in ("foreign", "nobodys"):
        assert api.get(f"{LETTERS}/{world.letters[name]}").status_code == 404


def test_a_group_of_a_shared_queue_has_others_letters_and_is_not_shown(api, world) -> None:
    own = make_letter(world.queue, tenant=world.tenant)
    assert {row["id"] for row in api.get("/api/v1/dead-letter-groups").json()["results"]} == {own.group_id}


@pytest.mark.parametrize("verb", ["discard", "discard?dry_run=true"])
@pytest.mark.parametrize("named", ["foreign", "unknown"])
def test_anothers_letter_is_as_one_that_does_not_exist(api, world, verb, named) -> None:
    wanted = [world.letters["own"], world.letters.get(named) or uuid4()]
    answer = api.post(f"{LETTERS}/{verb}", {"letters": wanted, "reason": "x"})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "1 of the letters does not exist; reload the list and choose again"
    assert states_of(list(world.letters.values())) == ["open"] * 3


def test_which_service_sent_a_letter_is_not_for_a_tenants_people(api, world) -> None:
    headers = {name: base64.b64encode(value).decode() for name, value in ((PRODUCER_ID, b"core-1"), ("unit", b"C"))}
    letter = make_letter(world.shared, tenant=world.tenant, headers=headers, service="rule-engine-1")
    shown = api.get(f"{LETTERS}/{letter.id}").json()
    assert (shown["headers"], shown["service"]) == ({"unit": headers["unit"]}, "")
    assert {row["service"] for row in api.get(LETTERS).json()["results"]} == {""}
    edited = api.put(f"{LETTERS}/{letter.id}/message", {"headers": headers, "payload": 1, "reason": "unit"})
    assert edited.status_code == 200
    assert api.get(f"{LETTERS}/{letter.id}").json()["edit"]["headers"] == {"unit": headers["unit"]}
    told = api_of(person("root", Role.ADMINISTRATOR)).get(f"{LETTERS}/{letter.id}").json()
    assert (told["headers"], told["service"]) == (headers, "rule-engine-1")


def test_a_filter_means_the_own_letters(api, world) -> None:
    queue = str(world.shared.id)
    assert api.post(f"{LETTERS}/discard", {"filter": {"queue": queue}, "reason": "x"}).json()["count"] == 1
    assert states_of(list(world.letters.values())) == ["discarded", "open", "open"]
    anothers = {"filter": {"tenant": str(world.other.id)}, "reason": "x"}
    assert api.post(f"{LETTERS}/discard", anothers).status_code == 409
    assert states_of(list(world.letters.values())) == ["discarded", "open", "open"]


def test_a_replay_is_its_tenants_and_so_is_its_operation(api, world) -> None:
    answer = api.post(REPLAYS, {"filter": {"state": "open"}})
    assert (answer.status_code, answer.json()["total"]) == (202, 1)
    assert Operation.objects.get(pk=answer.json()["operation"]).tenant_id == world.tenant.id
    assert states_of(list(world.letters.values())) == ["replaying", "open", "open"]
    start_replay(SYSTEM, [world.letters["foreign"]])
    assert ids(api.get(REPLAYS)) == {answer.json()["id"]}
    assert ids(api.get("/api/v1/operations")) == {answer.json()["operation"]}
    others = api_of(person("eve", Role.TENANT_ADMIN, world.other))
    assert others.post(f"{REPLAYS}/{answer.json()['id']}/cancel").status_code == 404


def test_letters_are_not_sent_to_anothers_queue(api, world) -> None:
    answer = api.post(REPLAYS, {"letters": [world.letters["own"]], "target": str(world.foreign.id)})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["target"])


@pytest.mark.parametrize("named", ["foreign", "nobody"])
def test_an_edited_message_stays_its_tenants(api, world, named) -> None:
    """A queue that all share handles it for whom its header names."""
    own, other = (base64.b64encode(str(tenant.id).encode()).decode() for tenant in (world.tenant, world.other))
    letter = make_letter(world.shared, tenant=world.tenant, headers={"tenantId": own})
    changed = {"headers": {"tenantId": other} if named == "foreign" else {}, "payload": 1}
    answer = api.put(f"{LETTERS}/{letter.id}/message", changed)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert f"which stays {world.tenant.id}" in answer.json()["detail"]
    assert api.put(f"{LETTERS}/{letter.id}/message", {**changed, "headers": {"tenantId": own}}).status_code == 200


@pytest.mark.parametrize("header", ["producerId", "responseTopic", "threadName", "stackTrace"])
def test_an_edited_message_stays_its_senders_of_whom_a_tenant_is_not_told(api, world, header) -> None:
    own, core, mine = (base64.b64encode(text.encode()).decode() for text in (str(world.tenant.id), "core-1", "mine"))
    letter = make_letter(world.shared, tenant=world.tenant, headers={"tenantId": own, header: core})
    address = f"{LETTERS}/{letter.id}"
    assert api.get(address).json()["headers"] == {"tenantId": own}
    answer = api.put(f"{address}/message", {"headers": {"tenantId": own, header: mine}, "payload": 1})
    assert (answer.status_code, answer.json()["headers"]) == (200, {"tenantId": own})
    assert api.get(address).json()["edit"]["headers"] == {"tenantId": own}
    letter.refresh_from_db()
    assert message_of(letter).headers[header] == b"core-1"


def test_a_ledger_tells_a_tenant_nothing_of_the_others(api, world) -> None:
    letter = world.letters["own"]
    note_letter(SYSTEM, letter, "was told")
    discard_letters(Actor("root"), [letter, world.letters["foreign"]], "both")
    ledger = api.get(f"{LETTERS}/{letter}").json()["ledger"]
    assert [entry["action"] for entry in ledger] == ["note"]
    assert api.post(f"{LETTERS}/restore", {"letters": [letter]}).status_code == 200
    ledger = api.get(f"{LETTERS}/{letter}").json()["ledger"]
    assert [entry["action"] for entry in ledger] == ["restore", "note"]
