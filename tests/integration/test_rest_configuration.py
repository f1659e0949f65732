"""The whole configuration over REST, and by `manage.py`."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import change_queue
from queueapi.choices import Role
from queueapi.configuration.yaml_reading import read_yaml
from queueapi.models import AuditEntry, Queue, Tenant
from tests.people import api_of, bearer, person, token_of
from tests.rest_kit import World, differences, snapshot

URL = "/api/v1/configuration"
YAML = "application/yaml"
ORDERS = "format: 1\nqueues:\n- {tenant: System, name: Orders, topic: orders, handler: log}\n"
HOOK = {"url": "https://hooks.example.org/x", "secret": "s3cret-enough-for-a-signature-0123"}


@pytest.fixture
def api(installation) -> APIClient:
    return api_of(person("root", Role.ADMINISTRATOR))


def post(api: APIClient, text: str | bytes, query: str = "", **headers: str) -> Any:
    return api.generic("POST", f"{URL}{query}", text, content_type=YAML, headers=headers)


# --- over REST


def test_it_is_yaml_unless_json_is_asked_for(api) -> None:
    text = api.get(URL)
    assert (text.status_code, text["Content-Type"], text["Cache-Control"]) == (
        200,
        f"{YAML}; charset=utf-8",
        "no-store",
    )
    assert text.content.startswith(b"# The configuration of a Switchyard installation")
    assert "Accept" in text["Vary"]
    assert api.get(URL).content == text.content
    told = api.get(URL, headers={"Accept": "application/json"})
    assert told["Content-Type"] == "application/json"
    assert told.json() == read_yaml(text.content.decode(), 64)
    assert api.get(URL, headers={"Accept": "text/csv"}).status_code == 406


def test_what_was_given_can_be_sent_back_and_changes_nothing(api, installation) -> None:
    world, text = World(installation), api.get(URL).content
    before = snapshot(world)
    answer = post(api, text)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == {"summary": "nothing would change", "changes": [], "warnings": [], "problems": []}
    assert differences(before, snapshot(world)) == []


def test_an_import_is_planned_and_then_done_by_who_asked(api) -> None:
    plan = post(api, ORDERS, "?dry_run=true").json()
    assert (plan["summary"], plan["problems"]) == ("create 1 queue", [])
    [change] = plan["changes"]
    assert (change["what"], change["before"], change["after"]["topic"]) == ("queue System/Orders", None, "orders")
    assert not Queue.objects.filter(name="Orders").exists()
    assert post(api, ORDERS).json() == plan
    assert Queue.objects.get(name="Orders").state == "active"
    entries = AuditEntry.objects.filter(actor_name="root").order_by("id")
    assert [(one.action, one.object_type) for one in entries] == [
        ("create", "queue"),
        ("start_operation", "operation"),
        ("import", "configuration"),
    ]
    assert post(api, ORDERS).json()["summary"] == "nothing would change"


def test_a_section_with_nothing_below_its_name_is_as_if_left_out_and_the_schema_says_so(api) -> None:
    planned = api.post(f"{URL}?dry_run=true", "format: 1\nqueues:\n", content_type="application/yaml")
    assert (planned.status_code, planned.json()["changes"]) == (200, [])
    shapes = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    fields = shapes["GivenConfiguration"]["properties"]
    assert (fields["queues"].get("nullable"), fields["format"].get("nullable")) == (True, None)


def test_two_plans_of_what_is_new_are_the_same(api) -> None:
    text = "format: 1\ntenant_profiles: [{name: gold}]\ntenants: [{name: Quay, profile: gold}]\n"
    plans = [post(api, text, query).json() for query in ("?dry_run=true", "?dry_run=true", "")]
    assert plans[0]["summary"] == "create 1 profile, 1 tenant"
    assert plans[0] == plans[1] == plans[2]


def test_what_stands_in_the_way_is_in_the_plan_and_refused_as_a_whole(api) -> None:
    text = f"{ORDERS}- {{tenant: System, name: Telemetry, partitions: 7}}\n"
    [problem] = post(api, text, "?dry_run=true").json()["problems"]
    assert (problem["place"], problem["line"]) == ("queues[1].partitions", 4)
    refused = post(api, text)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_input")
    assert refused.json()["errors"] == {"queues[1].partitions": [f"line 4: {problem['why']}"]}
    as_json = json.dumps(read_yaml(text, 64))
    told = api.generic("POST", f"{URL}?dry_run=true", as_json, content_type="application/json")
    assert told.json()["problems"] == [{**problem, "line": None}]
    assert not Queue.objects.filter(name="Orders").exists()


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("format: 1\nformat: 1\n", "line 2: the key 'format' is here a second time"),
        ("[" * 100_000, "line 1: this is nested too deeply; 64 levels are the most"),
        (b"format: \xff", "this is not UTF-8, at byte 8"),
        ("a: !!python/name:os.system x", "line 1: the tag"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(api, text, detail) -> None:
    answer = post(api, text)
    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
    assert answer.json()["detail"].startswith(detail)


def test_a_document_that_is_too_large_is_refused(api) -> None:
    answer = post(api, f"format: 1\n# {'x' * 3_000_000}")
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")


def test_an_import_can_ask_that_nothing_has_changed_since(api) -> None:
    tag = api.get(URL)["ETag"]
    change_queue(SYSTEM, Queue.objects.get(), retries=9)
    answer = post(api, ORDERS, **{"If-Match": tag})
    assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")
    assert not Queue.objects.filter(name="Orders").exists()
    assert post(api, ORDERS, **{"If-Match": api.get(URL)["ETag"]}).status_code == 200


def test_a_secret_is_hidden_and_that_it_was_changed_makes_another_etag(api) -> None:
    queue = change_queue(SYSTEM, Queue.objects.get(), handler="webhook", handler_options=HOOK)
    before = api.get(URL)
    assert HOOK["secret"] not in before.content.decode()
    change_queue(SYSTEM, queue, handler_options={**HOOK, "secret": "another-one-for-a-signature-0123"})
    after = api.get(URL)
    assert after.content == before.content
    assert after["ETag"] != before["ETag"]


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
def test_only_administrators_have_it(installation, role) -> None:
    client = api_of(person("ada", role))
    assert [client.get(URL).status_code, post(client, ORDERS).status_code] == [403, 403]


def test_a_token_needs_its_scope(api) -> None:
    root = person("ada", Role.ADMINISTRATOR)
    reader = bearer(token_of(root, ["configuration:read"])[1])
    assert [reader.get(URL).status_code, post(reader, ORDERS).status_code] == [200, 403]
    writer = bearer(token_of(root, ["configuration:write"])[1])
    assert [writer.get(URL).status_code, post(writer, ORDERS).status_code] == [403, 200]


# --- on the command line


def manage(command: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


def test_the_commands_do_the_same(api, tmp_path) -> None:
    text = manage("export_configuration")
    assert text.encode() == api.get(URL).content
    file = tmp_path / "switchyard.yaml"
    file.write_text(text)
    assert manage("import_configuration", str(file)) == "nothing would change\n"
    file.write_text("format: 1\ntenants:\n- {name: Greenhouse, messages_per_s: 7}\n")
    told = "tenant Greenhouse: messages_per_s: null -> 7\nchange 1 tenant\n"
    assert manage("import_configuration", "--dry-run", str(file)) == told
    assert Tenant.objects.get(name="Greenhouse").messages_per_s is None
    assert manage("import_configuration", str(file)) == told
    assert Tenant.objects.get(name="Greenhouse").messages_per_s == 7


def test_the_command_reads_standard_input_and_json(installation, monkeypatch) -> None:
    document = json.dumps({"format": 1, "tenants": [{"name": "Quay"}]}).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(document)))
    assert manage("import_configuration", "-").endswith("create 1 tenant\n")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "format: 3\ntenants: [{nam: x}]",
            ["format: line 1: 3 is not known here", "tenants[0].nam: line 2: ", "tenants[0].name: line 2: "],
        ),
        ("a: ]", ["line 1: this is not YAML"]),
        (
            ORDERS.replace("System", "Sistem"),
            ["queues[0].tenant: line 3: there is no tenant 'Sistem'; did you mean System?"],
        ),
    ],
)
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_the_command_names_all_problems_and_ends_with_a_code(installation, tmp_path, text, lines, options) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(CommandError) as refused:
        manage("import_configuration", *options, str(file))
    assert refused.value.returncode == 2
    told = str(refused.value).splitlines()
    assert len(told) == len(lines)
    assert all(line.startswith(wanted) for line, wanted in zip(told, lines, strict=True))


def test_a_file_that_is_not_there_is_told_so(tmp_path, db) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        manage("import_configuration", str(tmp_path / "nowhere.yaml"))
