"""Message types over REST: entered, changed as far as nothing is misread, removed."""

import base64
from typing import Any

import pytest

from queueapi.actions.actor import SYSTEM
from queueapi.actions.message_types import Description, change_message_type, create_message_type
from queueapi.errors import Incompatible
from queueapi.models import AuditEntry, MessageType
from queueapi.selectors.message_types import form_of_queue, form_of_topic
from queuecore.messagetypes import compile_sources

TYPES = "/api/v1/message-types"
SOURCE = """syntax = "proto3";
package shop;
message Order {
  string id = 1;
  int64 amount = 2;
}
"""
MORE = SOURCE.replace("int64 amount = 2;", "int64 amount = 2;\n  string note = 3;")
OTHER = SOURCE.replace("int64 amount = 2;", "string amount = 2;")


def described(source: str = SOURCE, **more: Any) -> dict[str, Any]:
    return {"files": {"shop/order.proto": source}, **more}


@pytest.fixture
def order(admin_api) -> dict[str, Any]:
    body = described(name="order", message="shop.Order", topics=["telemetry"])
    answer = admin_api.post(TYPES, body)
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_a_type_is_entered_from_its_source(admin_api, order, installation) -> None:
    found = admin_api.get(f"{TYPES}/Order").json()
    assert found == order
    assert (found["name"], found["message"], found["version"]) == ("order", "shop.Order", 1)
    assert (found["topics"], found["messages"]) == (["telemetry"], ["shop.Order"])
    assert found["files"] == {"shop/order.proto": SOURCE}
    assert [one["created_by"] for one in found["versions"]] == ["root"]
    form = form_of_queue(installation.queue)
    assert form is not None
    assert form.to_json(form.from_json({"id": "a"})) == {"id": "a"}
    [entry] = AuditEntry.objects.filter(object_type="message_type")
    assert (entry.action, entry.after["topics"]) == ("create", ["telemetry"])


def test_a_type_is_entered_from_what_protoc_makes(admin_api) -> None:
    descriptors = base64.b64encode(compile_sources({"a.proto": SOURCE})).decode()
    body = {"name": "order", "message": "shop.Order", "descriptor_set": descriptors}
    answer = admin_api.post(TYPES, body)
    assert answer.status_code == 201
    assert (answer.json()["descriptor_set"], answer.json()["files"]) == (descriptors, {})


def test_a_next_version_that_nobody_misreads(admin_api, order, installation) -> None:
    plan = admin_api.patch(f"{TYPES}/order?dry_run=true", described(MORE)).json()
    assert plan == {
        "summary": "it would have version 2",
        "changes": [{"what": "version", "before": 1, "after": 2}],
        "warnings": [],
        "version": 2,
        "new_version": True,
        "compatible": True,
        "incompatibilities": [],
        "topics_added": [],
        "topics_removed": [],
    }
    assert MessageType.objects.get().version == 1
    changed = admin_api.patch(f"{TYPES}/order", described(MORE)).json()
    assert (changed["version"], len(changed["versions"])) == (2, 2)
    assert form_of_queue(installation.queue).from_json({"note": "x"})
    assert [entry.action for entry in AuditEntry.objects.filter(object_type="message_type")] == ["change", "create"]


def test_what_would_be_misread_is_refused_and_each_reason_told(admin_api, order) -> None:
    plan = admin_api.patch(f"{TYPES}/order?dry_run=true", described(OTHER)).json()
    assert plan["compatible"] is False
    [found] = plan["incompatibilities"]
    assert (found["where"], "int64 and is string" in found["why"]) == ("shop.Order.amount", True)
    answer = admin_api.patch(f"{TYPES}/order", described(OTHER))
    assert (answer.status_code, answer.json()["code"]) == (409, "incompatible")
    assert answer.json()["errors"]["description"] == [f"{found['where']}: {found['why']}"]
    assert MessageType.objects.get().version == 1


def test_the_same_again_changes_nothing(admin_api, order) -> None:
    assert admin_api.patch(f"{TYPES}/order", described(topics=["telemetry"])).json()["version"] == 1
    assert AuditEntry.objects.filter(object_type="message_type").count() == 1


def test_topics_are_added_and_taken_away(admin_api, order, installation) -> None:
    plan = admin_api.patch(f"{TYPES}/order?dry_run=true", {"topics": ["orders", "letters"]}).json()
    assert (plan["topics_added"], plan["topics_removed"]) == (["letters", "orders"], ["telemetry"])
    assert admin_api.patch(f"{TYPES}/order", {"topics": ["orders"]}).json()["topics"] == ["orders"]
    assert form_of_queue(installation.queue) is None


def test_a_topic_carries_one_type(admin_api, order) -> None:
    answer = admin_api.post(TYPES, described(name="other", message="shop.Order", topics=["telemetry"]))
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "telemetry carries messages of type order" in answer.json()["detail"]
    assert MessageType.objects.count() == 1


def test_a_type_is_removed(admin_api, order, installation) -> None:
    assert admin_api.delete(f"{TYPES}/order").status_code == 204
    assert admin_api.get(f"{TYPES}/order").status_code == 404
    assert form_of_queue(installation.queue) is None
    assert AuditEntry.objects.filter(action="delete", object_type="message_type").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "a b"}, "name: 'a b' cannot be"),
        ({"name": "Order"}, "there is a message type Order already"),
        ({"message": "shop.Nothing"}, "there are: shop.Order"),
        ({"files": {"a.proto": "message {"}}, "files: a.proto, line 1: a name is expected"),
        ({"files": {"a.proto": "message A {" * 50}}, "nested more than 32 deep"),
        ({"files": {"a.proto": 'import "b.proto";'}}, "'b.proto' is imported and is not there"),
        ({"files": {"a\0.proto": "message A {}"}}, "NUL"),
        ({"topics": ["a b"]}, "topics: topic 'a b' may hold only"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(admin_api, order, change, told) -> None:
    answer = admin_api.post(TYPES, {**described(name="new", message="shop.Order"), **change})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert told in answer.json()["detail"]
    assert MessageType.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "new", "message": "shop.Order"}, "non_field_errors"),
        ({"name": "new", "message": "shop.Order", "descriptor_set": "%"}, "descriptor_set"),
        (described(name="new", message="shop.Order", descriptor_set="AA=="), "non_field_errors"),
        (described(message="shop.Order"), "name"),
        ({"name": "new", "message": "shop.Order", "files": {}}, "files"),
    ],
)
def test_what_cannot_be_used_is_named(admin_api, body, field) -> None:
    answer = admin_api.post(TYPES, body)
    assert answer.status_code == 400
    assert field in answer.json()["errors"]


def test_hostile_descriptions_are_refused(admin_api) -> None:
    for data in (b"\xff" * 100, b"x" * 300_000, b"\x0a\x02\x22\x00"):
        body = {"name": "new", "message": "A", "descriptor_set": base64.b64encode(data).decode()}
        assert admin_api.post(TYPES, body).status_code == 400


def test_lists_ask_twice_however_many_there_are(admin_api, order, django_assert_num_queries) -> None:
    for number in range(3):
        admin_api.post(TYPES, described(name=f"t{number}", message="shop.Order", topics=[f"topic{number}"]))
    with django_assert_num_queries(2):
        listed = admin_api.get(TYPES).json()["results"]
    assert [row["topics"] for row in listed] == [["telemetry"], ["topic0"], ["topic1"], ["topic2"]]


def test_dry_runs_say_what_would_be_and_change_nothing(admin_api, order) -> None:
    entered = admin_api.post(f"{TYPES}?dry_run=true", described(name="new", message="shop.Order", topics=["orders"]))
    assert {each["what"].split()[-1]: each["after"] for each in entered.json()["changes"]} == {
        "name": "new",
        "message": "shop.Order",
        "version": 1,
        "topics": ["orders"],
    }
    assert admin_api.post(f"{TYPES}?dry_run=true", described(name="ORDER", message="shop.Order")).status_code == 400
    removed = admin_api.delete(f"{TYPES}/order?dry_run=true")
    assert [each["before"] for each in removed.json()["changes"]][-1] == ["telemetry"]
    assert [row.name for row in MessageType.objects.all()] == ["order"]


def test_each_database_keeps_them(database) -> None:
    first, more, other = (Description.of({"a.proto": source}) for source in (SOURCE, MORE, OTHER))
    order = create_message_type(SYSTEM, name="order", message="shop.Order", description=first, topics=["orders"])
    assert change_message_type(SYSTEM, order, description=more).version == 2
    with pytest.raises(Incompatible):
        change_message_type(SYSTEM, order, description=other)
    form = form_of_topic("orders")
    assert form is not None
    assert form.to_json(form.from_json({"note": "x"})) == {"note": "x"}
