"""The audit: kept as it was written, searched, and taken along as a file."""

import csv
import json
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection
from django.test import AsyncClient
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM, Actor, audit
from queueapi.choices import Role
from queueapi.errors import AppendOnly
from queueapi.models import AuditEntry, Tenant
from queuecore.topics import SYSTEM_TENANT
from tests.people import api_of, person, token_of

URL = "/api/v1/audit"
KEPT = import_module("queueapi.migrations.0011_access").KEEP_AUDIT


def entry(action: str = "create", actor: Actor = SYSTEM, **options: Any) -> AuditEntry:
    audit(actor, action, options.pop("object_type", "queue"), options.pop("object_id", "1"), **options)
    return AuditEntry.objects.latest("id")


@pytest.fixture
def kept(database) -> Iterator[None]:
    """As an installation has it: other tests empty the table between them, and take the trigger away for that."""
    statement = KEPT["sqlite"][1]
    with connection.cursor() as cursor:
        if database == "sqlite":
            cursor.execute(statement)
        yield
        if database == "sqlite":
            cursor.execute("drop trigger audit_never_removed")


@pytest.fixture
def api(db) -> APIClient:
    return api_of(person("root", Role.AUDITOR))


def found(answer) -> list[str]:
    return [row["action"] for row in answer.json()["results"]]


@pytest.mark.parametrize(
    "statement",
    ["update queueapi_auditentry set actor_name = 'nobody'", "delete from queueapi_auditentry"],
)
def test_the_database_itself_refuses_to_rewrite_it(kept, statement) -> None:
    written = entry()
    with pytest.raises(DatabaseError, match="the audit is never changed"), connection.cursor() as cursor:
        cursor.execute(statement)
    assert AuditEntry.objects.get() == written


def test_so_does_the_model(db) -> None:
    written = entry()
    written.action = "nothing"
    for rewrite in (
        written.save,
        written.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(action="nothing"),
        lambda: AuditEntry.objects.bulk_update([written], ["action"]),
    ):
        with pytest.raises(AppendOnly, match="never changed"):
            rewrite()
    assert AuditEntry.objects.get().action == "create"


def test_it_tells_for_whom_by_what_and_in_which_request(db) -> None:
    ada = person("ada", Role.ADMINISTRATOR)
    token, _ = token_of(ada, ["queues:read"])
    own, other = uuid4(), uuid4()
    actor = Actor("ada", ada, "10.0.0.1", token_id=token.id, tenant_id=own, request_id="r-1")
    written = entry(actor=actor)
    assert (written.token, written.tenant_id, written.request_id) == (token, own, "r-1")
    assert entry(actor=actor, tenant_id=other).tenant_id == other


def test_it_is_searched_by_all_that_it_says(api) -> None:
    ada = person("ada", Role.ADMINISTRATOR)
    token, _ = token_of(ada, ["queues:read"])
    tenant = uuid4()
    wanted = entry(
        "drain", Actor("ada", ada, token_id=token.id), object_type="service", object_id="host-1", tenant_id=tenant
    )
    entry("pause")
    for asked in (
        {"actor": "ada", "action": "drain"},
        {"action": "drain"},
        {"object_type": "service"},
        {"object_id": "host-1"},
        {"tenant": str(tenant)},
        {"token": str(token.id)},
        {"since": wanted.at.isoformat(), "until": (wanted.at + timedelta(microseconds=1)).isoformat()},
    ):
        assert found(api.get(URL, asked)) == ["drain"], asked
    assert found(api.get(URL, {"since": (timezone.now() + timedelta(days=1)).isoformat()})) == []
    shown = api.get(f"{URL}/{wanted.id}").json()
    assert (shown["actor"], shown["token"], shown["tenant"]) == ("ada", str(token.id), str(tenant))


@pytest.mark.parametrize("asked", [{"tenant": "x"}, {"token": "x"}, {"since": "yesterday"}])
def test_a_filter_that_makes_no_sense_is_refused(api, asked) -> None:
    answer = api.get(URL, asked)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, list(asked))


def test_pages_are_steady_while_entries_are_added(api) -> None:
    for number in range(5):
        entry(f"a{number}")
    first = api.get(URL, {"page_size": 3})
    entry("newer")
    assert found(first) == ["a4", "a3", "a2"]
    assert found(api.get(first.json()["next"]))[:2] == ["a1", "a0"]


def test_a_tenants_administrators_see_what_was_done_to_their_things(api) -> None:
    tenant = Tenant.objects.create(name="Greenhouse")
    entry("own", Actor("root", address="10.0.0.1"), tenant_id=tenant.id)
    entry("foreign", tenant_id=uuid4())
    entry("systems", tenant_id=SYSTEM_TENANT)
    entry("nobodys")
    [row] = api_of(person("ada", Role.TENANT_ADMIN, tenant)).get(URL).json()["results"]
    assert (row["action"], "address" in row) == ("own", False)
    assert "address" in api.get(URL).json()["results"][0]


def test_it_is_taken_along_as_json_lines(api) -> None:
    for number in range(1_201):
        entry("many", after={"number": number})
    entry("other")
    answer = api.get(f"{URL}/export.jsonl", {"action": "many"})
    chunks = list(answer.streaming_content)
    lines = [json.loads(line) for line in b"".join(chunks).splitlines()]
    assert [line["after"]["number"] for line in lines] == list(range(1_200, -1, -1))
    assert len(chunks) == 3, "a part at a time"
    assert answer["content-disposition"] == 'attachment; filename="audit.jsonl"'


def test_it_is_taken_along_as_csv_that_no_spreadsheet_takes_for_formulas(api) -> None:
    token, _ = token_of(person("ada", Role.ADMINISTRATOR), ["queues:read"])
    entry("create", Actor("=cmd()", token_id=token.id), after={"name": "ä,\n"})
    rows = list(csv.DictReader(_text(api.get(f"{URL}/export.csv")).splitlines(keepends=True)))
    assert rows[0]["token"] == str(token.id)
    assert (rows[0]["actor"], rows[0]["tenant"], json.loads(rows[0]["after"])) == ("'=cmd()", "", {"name": "ä,\n"})
    assert _text(api.get(f"{URL}/export.csv", {"action": "nothing"})) == ""


def test_a_server_that_works_asynchronously_sends_it_as_it_is_read(transactional_db) -> None:
    user = person("root", Role.AUDITOR)
    for number in range(501):
        entry("many", after={"number": number})
    client = AsyncClient()
    client.force_login(user)

    async def exported() -> list[bytes]:
        answer = await client.get(f"{URL}/export.jsonl")
        assert answer.is_async
        return [chunk async for chunk in answer.streaming_content]

    chunks = async_to_sync(exported)()
    assert [len(chunk.splitlines()) for chunk in chunks] == [500, 1]


def test_whoever_has_changed_something_is_not_removed(db) -> None:
    ada = person("ada", Role.ADMINISTRATOR)
    entry(actor=Actor("ada", ada))
    with pytest.raises(Exception, match="protected foreign keys"):
        ada.delete()


def _text(answer) -> str:
    return b"".join(answer.streaming_content).decode()
