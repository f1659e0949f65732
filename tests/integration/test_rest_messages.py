"""Messages of a queue over REST: browse, look at one, publish many."""

import base64
import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.message_types import Description, create_message_type
from queueapi.actions.messages import publish_message
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant
from queueapi.selectors import message_scans
from queueapi.selectors.message_scans import MessageQuery, scan_messages
from queueapi.selectors.partition_walks import ScanLimits
from queuecore.hashing import partition_of
from queuecore.messages import QueueMessage, encode_millis
from queuecore.sending import send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S

MESSAGES = "/api/v1/queues/telemetry/messages"
SOURCE = """syntax = "proto3";
package shop;
message Order { string id = 1; int64 amount = 2; Order parent = 3; }
"""

on_each_provider = pytest.mark.usefixtures("each_provider")


def entity_in(partition: int) -> UUID:
    return next(entity for entity in iter(uuid4, None) if partition_of(entity, 3) == partition)


def put(installation, partition: int, *payloads: bytes, key: Any = None, **headers: bytes) -> None:
    """Store these in one of the queue's partitions, one after the other."""
    info = installation.queue.partition_info(partition)
    producer = runtime.provider().producer()
    for payload in payloads:
        send_and_wait(producer, info, QueueMessage(key or uuid4(), payload, headers), DEADLINE_S)


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def browse(api, **query: Any) -> dict[str, Any]:
    answer = api.get(MESSAGES, query)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def payloads(page: dict[str, Any]) -> list[Any]:
    return [one["payload"] for one in page["results"]]


def through(api, **query: Any) -> list[Any]:
    """All payloads, page by page."""
    page = browse(api, **query)
    seen = payloads(page)
    while page["next"]:
        page = api.get(page["next"]).json()
        seen += payloads(page)
    assert page["complete"]
    return seen


# --- browsing


@on_each_provider
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_newest_and_oldest_first_page_by_page(admin_api, installation, limit) -> None:
    put(installation, 0, *numbers(20))
    assert through(admin_api, partition=0, limit=limit) == list(reversed(range(20)))
    assert through(admin_api, partition=0, limit=limit, order="oldest") == list(range(20))


@on_each_provider
def test_all_partitions_together_in_the_order_of_time(admin_api, installation) -> None:
    for number in range(12):
        put(installation, number % 3, b"%d" % number)
    for order, wanted in (("oldest", range(12)), ("newest", reversed(range(12)))):
        seen = through(admin_api, order=order, limit=5)
        assert sorted(seen) == list(range(12))
        stamps = [one["timestamp_ms"] for one in browse(admin_api, order=order)["results"]]
        assert stamps == sorted(stamps, reverse=order == "newest")
        # Within a partition, whatever the clock says.
        assert [number for number in seen if number % 3 == 1] == [one for one in wanted if one % 3 == 1]


@on_each_provider
def test_from_an_offset_on(admin_api, installation) -> None:
    put(installation, 1, *numbers(10))
    assert payloads(browse(admin_api, partition=1, offset=7, order="oldest")) == [7, 8, 9]
    assert payloads(browse(admin_api, partition=1, offset=2)) == [2, 1, 0]
    assert payloads(browse(admin_api, partition=1, offset=99, order="oldest")) == []


@on_each_provider
def test_by_time(admin_api, installation) -> None:
    put(installation, 0, *numbers(3))
    put(installation, 2, *numbers(3, 3))
    for query, found in (
        ({"from": "2001-01-01T00:00Z"}, 6),
        ({"from": "2999-01-01T00:00Z"}, 0),
        ({"to": "2001-01-01T00:00Z"}, 0),
        ({"from": "2001-01-01T00:00Z", "to": "2999-01-01T00:00+02:00"}, 6),
    ):
        page = browse(admin_api, **query)
        assert (len(page["results"]), page["complete"]) == (found, True)


def test_by_entity_only_its_partition_is_looked_at(admin_api, installation) -> None:
    mine, other = entity_in(1), entity_in(1)
    put(installation, 1, *numbers(5), key=mine)
    put(installation, 1, *numbers(5, 5), key=other)
    put(installation, 0, *numbers(5, 10))
    page = browse(admin_api, entity=str(mine))
    assert payloads(page) == [4, 3, 2, 1, 0]
    assert [one["partition"] for one in page["partitions"]] == [1]
    assert page["scanned"] == 10


def test_by_tenant(admin_api, installation) -> None:
    other = create_tenant(SYSTEM, "Other")
    for number in range(6):
        publish_message(installation.queue, (installation.tenant, other)[number % 2], uuid4(), b"%d" % number)
    page = browse(admin_api, tenant=str(other.id))
    assert sorted(payloads(page)) == [1, 3, 5]
    assert {one["tenant"] for one in page["results"]} == {str(other.id)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GRÜN", ["plain", "escaped"]),
        ('"colour": "gr', ["escaped"]),
        ('"colour":"gr', ["escaped"]),
        ("784f394c-42b6", ["key"]),
        ("trace", ["header"]),
        ("Abc-17", ["header"]),
        ("inside", ["binary"]),
        ("00ff", []),
    ],
)
def test_by_a_text_in_key_headers_and_payload(admin_api, installation, text, found) -> None:
    sent = {
        "plain": b"gr\xc3\xbcn",
        "escaped": b'{"colour":"gr\\u00fcn"}',
        "key": b"1",
        "header": b"2",
        "binary": b"\x00\xffinside\x00",
    }
    offsets = list(sent)
    for name, payload in sent.items():
        key = UUID("784f394c-42b6-435a-983c-b7beff2784f9") if name == "key" else UUID(int=5)
        put(installation, 0, payload, key=key, **({"trace": b"abc-17"} if name == "header" else {}))
    page = browse(admin_api, text=text, order="oldest")
    assert [offsets[one["offset"]] for one in page["results"]] == found
    assert (page["scanned"], page["complete"]) == (5, True)


def test_by_a_text_in_what_a_message_type_decodes(admin_api, installation, typed) -> None:
    for number in range(3):
        order = {
            "payload": {"id": "x", "amount": number},
            "tenant": str(installation.tenant.id),
            "entity": str(uuid4()),
        }
        assert admin_api.post(f"{MESSAGES}?as=json", order, format="json").status_code == 201
    assert payloads(browse(admin_api, text='"amount": "2"')) == [{"id": "x", "amount": "2"}]


class TickingClock(ManualClock):
    """Each look at it takes a millisecond."""

    def monotonic(self) -> float:
        self.advance(0.001)
        return super().monotonic()


@on_each_provider
def test_to_look_for_a_text_takes_no_longer_than_a_scan_may(installation) -> None:
    put(installation, 0, *[b"hay"] * 300, b"needle")
    query, looked, rounds = MessageQuery(text="Needle", newest_first=False), 0, 0
    while True:
        scan = scan_messages(installation.queue, query, ScanLimits(time_ms=100), TickingClock())
        looked, rounds = looked + scan.scanned, rounds + 1
        if scan.complete:
            break
        assert (scan.stopped_by, scan.found) == ("time", ())
        places = {reach.partition: reach.next for reach in scan.reaches}
        query = MessageQuery(text="Needle", newest_first=False, places=places)
    assert [record.data for _, record in scan.found] == [b"needle"]
    assert (looked, rounds > 2) == (301, True)


@on_each_provider
def test_a_scan_says_how_far_it_looked_and_goes_on_there(installation) -> None:
    put(installation, 0, *numbers(200))
    wanted = entity_in(0)
    put(installation, 0, b"here", key=wanted)
    put(installation, 0, *numbers(200))
    limits = ScanLimits(records=50)
    for newest_first in (True, False):
        query = MessageQuery(entity=wanted, newest_first=newest_first)
        found, looked, rounds = [], 0, 0
        while True:
            scan = scan_messages(installation.queue, query, limits)
            found += [record.data for _, record in scan.found]
            looked, rounds = looked + scan.scanned, rounds + 1
            if scan.complete:
                break
            assert scan.stopped_by == "records"
            places = {reach.partition: reach.next for reach in scan.reaches}
            query = MessageQuery(entity=wanted, newest_first=newest_first, places=places)
        assert (found, looked) == ([b"here"], 401)
        assert rounds > 1


@on_each_provider
def test_large_messages_and_much_time_end_a_scan_as_well(installation) -> None:
    put(installation, 0, *[b"x" * 100_000] * 60)
    by_bytes = scan_messages(installation.queue, MessageQuery(limit=500), ScanLimits(size_bytes=1_000_000))
    assert (by_bytes.stopped_by, by_bytes.complete) == ("bytes", False)
    assert by_bytes.scanned_bytes < 4_000_000
    by_time = scan_messages(installation.queue, MessageQuery(limit=500), ScanLimits(time_ms=0))
    assert (by_time.stopped_by, by_time.scanned >= 1) == ("time", True)


@on_each_provider
def test_what_was_removed_or_compacted_is_passed_over(admin_api, installation) -> None:
    put(installation, 0, *numbers(30))
    place = installation.queue.partition_info(0).place
    runtime.provider().admin().delete_records({place: 20})
    page = browse(admin_api, partition=0, order="oldest", offset=3)
    assert payloads(page) == list(range(20, 30))
    assert page["partitions"] == [{"partition": 0, "beginning": 20, "end": 30, "next": None}]


def test_messages_that_come_meanwhile_do_not_disturb(admin_api, installation) -> None:
    put(installation, 0, *numbers(4))
    first = browse(admin_api, partition=0, limit=2)
    put(installation, 0, *numbers(4, 100))
    assert payloads(first) + payloads(admin_api.get(first["next"]).json()) == [3, 2, 1, 0]


@on_each_provider
def test_browsing_joins_no_group_and_asks_the_database_little(
    admin_api, installation, django_assert_num_queries
) -> None:
    put(installation, 0, *numbers(5))
    with django_assert_num_queries(4):  # the role of who asks, the queue, its pauses, its message type
        browse(admin_api)
    assert runtime.provider().admin().groups() == {}


def test_a_queue_of_many_partitions_wants_one_to_be_named(admin_api, installation) -> None:
    many = create_queue(SYSTEM, installation.queue.tenant, name="Many", topic="many", handler="log", partitions=33)
    answer = admin_api.get("/api/v1/queues/Many/messages")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "name a partition or an entity" in answer.json()["detail"]
    assert admin_api.get("/api/v1/queues/Many/messages", {"partition": 32}).status_code == 200
    assert many.partitions == 33


@pytest.mark.parametrize(
    "query",
    [
        {"partition": 3},
        {"partition": -1},
        {"offset": 1},
        {"partition": 0, "offset": 2**63},
        {"limit": 0},
        {"limit": 501},
        {"order": "sideways"},
        {"as": "pictures"},
        {"as": "protobuf"},
        {"from": "noon"},
        {"entity": "me"},
        {"tenant": "me"},
        {"text": ""},
        {"text": "x" * 201},
        {"preview_bytes": 16 * 1024 + 1},
        {"cursor": "ä"},
        {"cursor": "AA=="},
        {"cursor": base64.urlsafe_b64encode(b'[[0,"x"]]').decode()},
        {"cursor": base64.urlsafe_b64encode(b"[[0,1e999]]").decode()},
        {"cursor": base64.urlsafe_b64encode(b"[" * 5000).decode()},
    ],
)
def test_what_cannot_be_asked_is_a_problem(admin_api, query) -> None:
    answer = admin_api.get(MESSAGES, query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


# --- how messages are shown


@pytest.mark.parametrize(
    ("data", "form", "shown"),
    [
        (b'{"a": [1, null]}', "json", {"a": [1, None]}),
        ("grün".encode(), "text", "grün"),
        (b"\x00\xff", "hex", "00ff"),
        (b"", "text", ""),
        (b"NaN", "text", "NaN"),
        (b'"\\ud800"', "text", '"\\ud800"'),
        (b"9" * 2000, "json", int("9" * 2000)),
        (b"[" * 100 + b"]" * 100, "text", "[" * 100 + "]" * 100),
    ],
)
def test_payloads_are_shown_as_what_they_look_like(admin_api, installation, data, form, shown) -> None:
    put(installation, 0, data)
    [one] = browse(admin_api)["results"]
    assert (one["form"], one["payload"], one["size"]) == (form, shown, len(data))
    assert (one["payload_truncated"], one["undecodable"]) == (False, None)


@pytest.mark.parametrize(
    ("form", "shown"), [("text", "[1]"), ("hex", "5b315d"), ("base64", "WzFd"), ("json", [1]), ("auto", [1])]
)
def test_payloads_are_shown_as_is_asked_for(admin_api, installation, form, shown) -> None:
    put(installation, 0, b"[1]")
    [one] = browse(admin_api, **{"as": form})["results"]
    assert one["payload"] == shown


def test_what_is_not_what_was_asked_for_says_so(admin_api, installation) -> None:
    put(installation, 0, b"\xff")
    [one] = browse(admin_api, **{"as": "json"})["results"]
    assert (one["form"], one["payload"]) == ("hex", "ff")
    assert "no JSON" in one["undecodable"]


def test_headers_are_shown_as_what_their_names_say(admin_api, installation) -> None:
    request = uuid4()
    headers = {
        "ts": encode_millis(1_700_000_000_000),
        "expireTs": b"short",
        "requestId": request.bytes,
        "producerId": b"machine-1",
        "own": b"\x00\x01",
        "long": b"x" * 2000,
    }
    put(installation, 0, b"x", **headers)
    [one] = browse(admin_api)["results"]
    shown = {header["name"]: (header["value"], header["form"], header["truncated"]) for header in one["headers"]}
    assert shown == {
        "ts": ("2023-11-14T22:13:20+00:00", "time", False),
        "expireTs": ("short", "text", False),
        "requestId": (str(request), "uuid", False),
        "producerId": ("machine-1", "text", False),
        "own": ("0001", "hex", False),
        "long": ("x" * 1024, "text", True),
    }


def test_large_payloads_are_previewed_and_had_whole_by_their_own_address(admin_api, installation) -> None:
    data = json.dumps({"text": "ä" * 10_000}, ensure_ascii=False).encode()
    put(installation, 2, data)
    [one] = browse(admin_api, preview_bytes=101)["results"]
    assert (one["payload_truncated"], one["form"], one["size"]) == (True, "text", len(data))
    assert data.decode().startswith(one["payload"])
    assert 97 <= len(one["payload"].encode()) <= 101
    whole = admin_api.get(f"{MESSAGES}/2/{one['offset']}").json()
    assert (whole["payload"], whole["payload_truncated"]) == ({"text": "ä" * 10_000}, False)


def test_a_payload_as_bytes_is_to_be_saved_and_never_shown(admin_api, installation) -> None:
    put(installation, 0, b"<script>alert(1)</script>")
    for headers in ({}, {"accept": "application/octet-stream"}):
        answer = admin_api.get(f"{MESSAGES}/0/0", {"raw": "true"}, headers=headers)
        assert answer.content == b"<script>alert(1)</script>"
        assert answer["content-type"] == "application/octet-stream"
        assert answer["content-disposition"] == 'attachment; filename="Telemetry-0-0.bin"'
        assert answer["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer["content-security-policy"]


@pytest.mark.parametrize("where", ["0/1", "3/0", "0/x", "0/999999999999999999", "-1/0"])
def test_a_message_there_is_not(admin_api, installation, where) -> None:
    put(installation, 0, b"x")
    assert admin_api.get(f"{MESSAGES}/{where}").status_code == 404


@on_each_provider
def test_a_message_that_was_removed(admin_api, installation) -> None:
    put(installation, 0, b"x", b"y")
    runtime.provider().admin().delete_records({installation.queue.partition_info(0).place: 1})
    assert admin_api.get(f"{MESSAGES}/0/0").status_code == 404
    assert admin_api.get(f"{MESSAGES}/0/1").json()["payload"] == "y"


# --- message types


@pytest.fixture
def typed(installation) -> None:
    description = Description.of({"shop.proto": SOURCE})
    create_message_type(SYSTEM, name="order", message="shop.Order", description=description, topics=["telemetry"])


def test_json_is_encoded_and_shown_by_the_queues_message_type(admin_api, installation, typed) -> None:
    tenant, entity = str(installation.tenant.id), str(uuid4())
    order = {"id": "a", "amount": "12", "parent": {"id": "b"}}
    message = {"tenant": tenant, "entity": entity, "payload": order}
    assert admin_api.post(f"{MESSAGES}?as=json", message).status_code == 201
    assert admin_api.post(f"{MESSAGES}/batch?as=json", {"messages": [message]}).status_code == 201
    first, second = browse(admin_api)["results"]
    for one in (first, second):
        assert (one["form"], one["type"], one["payload"]) == ("protobuf", "shop.Order", order)
        assert one["size"] == len(b"\x0a\x01a\x10\x0c\x1a\x03\x0a\x01b")


def test_json_that_is_no_such_message_is_refused(admin_api, installation, typed) -> None:
    message = {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": {"colour": 1}}
    answer = admin_api.post(f"{MESSAGES}?as=json", message)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_message")
    assert "colour" in answer.json()["detail"]
    answer = admin_api.post(f"{MESSAGES}/batch?as=json", {"messages": [message]})
    assert "colour" in answer.json()["errors"]["messages"]["0"][0]
    assert browse(admin_api)["results"] == []


@pytest.mark.parametrize("path", [MESSAGES, f"{MESSAGES}/batch"])
@pytest.mark.parametrize(("form", "told"), [("json", "enter that under message-types"), ("xml", "there is no 'xml'")])
def test_without_a_message_type_nothing_can_be_encoded(admin_api, installation, path, form, told) -> None:
    message = {"tenant": str(installation.tenant.id), "entity": str(uuid4()), "payload": {}}
    answer = admin_api.post(f"{path}?as={form}", {"messages": [message]} if path.endswith("batch") else message)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert told in answer.json()["detail"]


@pytest.mark.parametrize(
    ("data", "form"), [(b"\xff\xff", "hex"), (b'{"a": 1}', "json"), (b"\x1a\x80\x80\x80\x80\x08", "hex")]
)
def test_what_is_not_of_the_type_is_shown_as_what_it_looks_like(admin_api, installation, typed, data, form) -> None:
    put(installation, 0, data)
    [one] = browse(admin_api)["results"]
    assert (one["form"], one["type"]) == (form, None)
    assert "not a shop.Order" in one["undecodable"]


def test_a_payload_that_would_become_far_more_is_not_decoded(admin_api, installation, typed) -> None:
    put(installation, 0, b"\x1a\x00" * 200_000)
    [one] = browse(admin_api)["results"]
    assert (one["form"], one["payload_truncated"], len(one["payload"])) == ("hex", True, 2 * 4096)
    whole = admin_api.get(f"{MESSAGES}/0/0").json()
    assert (whole["form"], len(whole["payload"])) == ("hex", 800_000)
    assert "up to 262144 are decoded" in whole["undecodable"]


# --- publishing many


def outgoing(installation, count: int, **more: Any) -> list[dict[str, Any]]:
    tenant = str(installation.tenant.id)
    return [{"tenant": tenant, "entity": str(uuid4()), "payload": number, **more} for number in range(count)]


@on_each_provider
def test_a_batch_is_stored_and_each_message_says_where(admin_api, installation) -> None:
    entity = str(uuid4())
    messages = [{**one, "entity": entity} for one in outgoing(installation, 3)] + outgoing(installation, 2)
    del messages[4]["payload"]
    messages[4]["payload_base64"] = base64.b64encode(b"\x00raw").decode()
    answer = admin_api.post(f"{MESSAGES}/batch", {"messages": messages})
    assert answer.status_code == 201, answer.json()
    told = answer.json()
    assert (told["stored"], told["failed"], len(told["results"])) == (5, 0, 5)
    for number, one in enumerate(told["results"]):
        stored = admin_api.get(f"{MESSAGES}/{one['partition']}/{one['offset']}").json()
        assert stored["payload"] == [0, 1, 2, 0, "00726177"][number]
        assert (stored["key"], stored["tenant"]) == (messages[number]["entity"], str(installation.tenant.id))
    # Those of one entity are in one partition, one behind the other.
    first, second, third = told["results"][:3]
    assert first["partition"] == second["partition"] == third["partition"]
    assert first["offset"] < second["offset"] < third["offset"]


def test_five_hundred_ask_the_database_as_one_does(admin_api, installation, django_assert_max_num_queries) -> None:
    """The role of who asks, the queue, its pauses, the tenants, whether the queue is still there then, and, every few
    seconds, the tenant's quotas."""
    for count in (1, 500):
        messages = outgoing(installation, count)
        with django_assert_max_num_queries(6):
            answer = admin_api.post(f"{MESSAGES}/batch", {"messages": messages})
        assert answer.json()["stored"] == count


def test_a_dry_run_says_where_messages_would_go(admin_api, installation) -> None:
    messages = outgoing(installation, 2)
    answer = admin_api.post(f"{MESSAGES}/batch?dry_run=true", {"messages": messages})
    plan = answer.json()
    assert (answer.status_code, plan["summary"]) == (200, "2 messages would be stored")
    for one, told in zip(messages, plan["changes"], strict=True):
        partition = partition_of(UUID(one["entity"]), 3)
        assert told["what"] == f"topic telemetry.{partition}, partition {partition} of Telemetry"
        assert (told["before"], one["entity"] in told["after"]) == (None, True)
    assert plan["warnings"] == ["nobody consumes at the moment: what is sent waits"]
    assert browse(admin_api)["results"] == []


def test_nothing_is_sent_where_anything_is_wrong(admin_api, installation) -> None:
    good = outgoing(installation, 1)[0]
    wrong = [
        "text",
        {**good, "entity": "me"},
        {**good, "tenant": 7},
        {**good, "payload_base64": "AA=="},
        {"tenant": good["tenant"], "entity": good["entity"], "payload_base64": "%"},
        {"tenant": good["tenant"], "entity": good["entity"], "payload_base64": None},
        {**good, "colour": "red"},
        {**good, "payload": "x" * 1_000_000},
    ]
    answer = admin_api.post(f"{MESSAGES}/batch", {"messages": [good, *wrong]})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert sorted(answer.json()["errors"]["messages"], key=int) == [str(index) for index in range(1, 9)]
    assert browse(admin_api)["results"] == []


def test_unknown_tenants_and_other_tenants_queues(admin_api, installation) -> None:
    stranger = {**outgoing(installation, 1)[0], "tenant": str(uuid4())}
    told = admin_api.post(f"{MESSAGES}/batch", {"messages": [stranger]}).json()
    assert "there is no tenant" in told["errors"]["messages"]["0"][0]
    own = create_queue(SYSTEM, create_tenant(SYSTEM, "Owner"), name="Own", topic="own", handler="log")
    answer = admin_api.post(f"/api/v1/queues/{own.id}/messages/batch", {"messages": outgoing(installation, 1)})
    assert str(own.tenant_id) in answer.json()["errors"]["messages"]["0"][0]


@pytest.mark.parametrize("body", [{}, [], {"messages": []}, {"messages": {}}, {"messages": [{}] * 501}])
def test_what_is_no_batch(admin_api, body) -> None:
    answer = admin_api.post(f"{MESSAGES}/batch", body)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["messages"])


@on_each_provider
def test_what_the_provider_refuses_is_told_for_each(admin_api, installation) -> None:
    gone, stays = entity_in(0), entity_in(1)
    runtime.provider().admin().delete_topics(["telemetry.0"])
    messages = [
        {**one, "entity": str(entity)} for one, entity in zip(outgoing(installation, 2), (gone, stays), strict=True)
    ]
    answer = admin_api.post(f"{MESSAGES}/batch", {"messages": messages})
    assert answer.status_code == 207
    failed, stored = answer.json()["results"]
    assert (failed["error"]["code"], failed["error"]["retryable"]) == ("unknown_topic", False)
    assert (stored["partition"], stored["offset"]) == (1, 0)


def test_partitions_are_read_by_what_the_queue_says(installation) -> None:
    assert message_scans.partitions_for(installation.queue, MessageQuery()) == [0, 1, 2]
    assert message_scans.partitions_for(installation.queue, MessageQuery(entity=entity_in(2))) == [2]


OPERATIONS = {
    "/topics": {"get"},
    "/topics/{topic}": {"get"},
    "/groups": {"get"},
    "/groups/{group}": {"get"},
    "/groups/{group}/offsets": {"post"},
    "/queues/{queue}/messages": {"get", "post"},
    "/queues/{queue}/messages/batch": {"post"},
    "/queues/{queue}/messages/tail": {"get"},
    "/queues/{queue}/messages/{partition}/{offset}": {"get"},
    "/message-types": {"get", "post"},
    "/message-types/{name}": {"get", "patch", "delete"},
}


def test_the_schema_tells_of_each_operation(admin_api) -> None:
    paths = admin_api.get("/api/v1/schema", headers={"accept": "application/vnd.oai.openapi+json"}).json()["paths"]
    for path, methods in OPERATIONS.items():
        told = paths[f"/api/v1{path}"]
        assert told.keys() & {"get", "post", "put", "patch", "delete"} == methods
        for operation in told.values():
            assert operation["summary"]
            assert operation["description"] or path == "/message-types"
