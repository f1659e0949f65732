"""Dead letters over REST, as automation sees them."""

import base64
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.letter_index import index_letters
from queueapi.actions.replays import start_replay
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterBody, LedgerEntry, QuarantinedLetter
from queuecore.deadletter.envelope import PREFIX
from queuecore.messages import Record
from tests.integration.replay_kit import ran
from tests.letters import FAILED_AT, make_letter, make_letters, states_of
from tests.message_types import make_type

URL = "/api/v1/dead-letters"
GROUPS = "/api/v1/dead-letter-groups"


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


@pytest.fixture
def queue(installation):
    return installation.queue


def found(answer) -> list[UUID]:
    assert answer.status_code == 200, answer.content
    return [UUID(row["id"]) for row in answer.json()["results"]]


def test_letters_are_listed_newest_first_and_page_by_page(api, queue) -> None:
    letters = make_letters(queue, 5)
    first = api.get(URL, {"page_size": 3})
    assert found(first) == letters[:1:-1]
    assert found(api.get(first.json()["next"])) == letters[1::-1]
    assert "payload_base64" not in first.json()["results"][0]


def test_however_many_failed_at_once_each_is_on_one_page(api, queue) -> None:
    story = {f"{PREFIX}failed.at.ms": b"1767225600000"}
    records = [Record(queue.letter_topic, 0, number, number, None, story, b"") for number in range(1_200)]
    index_letters(records, runtime.provider().reader())
    pages = [api.get(URL, {"page_size": 500})]
    while following := pages[-1].json()["next"]:
        if len(pages) == 1:
            # What comes meanwhile moves nothing.
            newer = make_letter(queue, letter_partition=1, failed_at=FAILED_AT + timedelta(days=365))
        pages.append(api.get(following))
    letters = [letter for page in pages for letter in found(page)]
    assert len(letters) == len(set(letters)) == 1_200
    back = [pages[-1]]
    while preceding := back[-1].json()["previous"]:
        back.append(api.get(preceding))
    assert [letter for page in reversed(back) for letter in found(page)] == [newer.id, *letters]


@pytest.mark.parametrize("cursor", ["", "cD0x", "W10=", "W1siYSIsImIiXSwwXQ==", "W1siXHUwMDAwIiwiYiJdLDBd", "é"])
def test_a_cursor_of_anothers_making_is_not_found(api, queue, cursor) -> None:
    make_letter(queue)
    answer = api.get(URL, {"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_letters_are_found_by_filters(api, queue, installation) -> None:
    other = make_letter(queue)
    wanted = make_letter(
        queue,
        tenant=installation.tenant,
        state=LetterState.DISCARDED,
        fingerprint="1111222233334444",
        exception_message="no JSON",
        failed_at=FAILED_AT - timedelta(days=1),
    )
    for asked in (
        {"tenant": str(installation.tenant.id)},
        {"state": "discarded"},
        {"group": wanted.group_id},
        {"fingerprint": "1111222233334444"},
        {"text": "json"},
        {"until": FAILED_AT.isoformat()},
    ):
        assert found(api.get(URL, asked)) == [wanted.id], asked
    assert set(found(api.get(URL, {"queue": str(queue.id)}))) == {wanted.id, other.id}


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        ({"state": "lost"}, "use one of open, replaying"),
        ({"queue": "main"}, "use a queue's id"),
        ({"group": "x"}, "use a group's id"),
        ({"since": "yesterday"}, "use a time with its zone"),
        ({"since": "2026-01-31T12:00:00"}, "use a time with its zone"),
        ({"until": "0001-01-01T00:00:00+14:00"}, "use a time with its zone"),
        ({"group": "9" * 30}, "use a group's id"),
        ({"text": "a\0b"}, "use text"),
    ],
)
def test_a_filter_that_makes_no_sense_says_what_would(api, asked, remedy) -> None:
    answer = api.get(URL, asked)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert remedy in answer.json()["detail"]


@pytest.mark.parametrize("name", ["text", "fingerprint", "reason", "exception_class"])
def test_half_a_surrogate_pair_is_no_text(api, queue, name) -> None:
    body = f'{{"filter": {{"{name}": "a\\ud800b"}}, "reason": "x"}}'
    answer = api.post(f"{URL}/discard", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "use text" in answer.json()["errors"]["filter"][0]


def test_a_letter_is_shown_whole(api, queue) -> None:
    letter = make_letter(queue, raw_key=b"\xff", key=None, headers={"customer": "YWNtZQ=="})
    shown = api.get(f"{URL}/{letter.id}").json()
    assert base64.b64decode(shown["payload_base64"]) == b'{"temperature": 21.5}'
    assert (shown["headers"], shown["raw_key_base64"], shown["key"]) == ({"customer": "YWNtZQ=="}, "/w==", None)
    assert shown["stack_trace"].startswith("Traceback")
    assert (shown["edit"], shown["ledger"], shown["failures"]) == (None, [], [])


def test_a_letter_tells_what_its_attempts_ended_with(api, queue) -> None:
    letter = make_letter(queue)
    attempt = {"number": 1, "failed_at_ms": 1_700_000_000_123, "outcome": "timed_out", "fault": "E", "message": "slow"}
    DeadLetterBody.objects.filter(letter=letter).update(failures=[attempt])
    assert api.get(f"{URL}/{letter.id}").json()["failures"] == [attempt]


def test_letters_are_discarded_and_restored_with_a_reason(api, queue) -> None:
    letters = make_letters(queue, 2)
    answer = api.post(f"{URL}/discard", {"letters": letters, "reason": "test data"})
    assert (answer.status_code, answer.json()["count"], answer.json()["actor_name"]) == (200, 2, "root")
    assert states_of(letters) == ["discarded"] * 2
    shown = api.get(f"{URL}/{letters[0]}").json()["ledger"]
    assert [(entry["action"], entry["reason"]) for entry in shown] == [("discard", "test data")]
    assert api.post(f"{URL}/restore", {"filter": {"state": "discarded"}}).json()["count"] == 2
    assert states_of(letters) == ["open"] * 2


def test_a_dry_run_says_what_would_be_done(api, queue) -> None:
    letters = [make_letter(queue).id, make_letter(queue, state=LetterState.REPLAYED).id]
    asked = {"filter": {"queue": str(queue.id)}, "reason": "test data"}
    plan = api.post(f"{URL}/discard?dry_run=true", asked).json()
    assert plan == {
        "summary": "1 letter would be discarded",
        "changes": [{"what": "the state of 1 letter", "before": "open", "after": "discarded"}],
        "warnings": ["1 of those chosen stays replayed"],
        "letters": 1,
        "refused": {"replayed": 1},
        "missing": 0,
        "why_not": "",
    }
    assert states_of(letters) == ["open", "replayed"]
    assert not LedgerEntry.objects.exists()


def test_who_comes_second_is_told_so(api, queue) -> None:
    letter = make_letter(queue, state=LetterState.REPLAYING)
    answer = api.post(f"{URL}/discard", {"letters": [letter.id], "reason": "test data"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_changeable")
    assert "1 of the letters is not open but replaying" in answer.json()["detail"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"letters": []},
        {"letters": ["x"]},
        {"filter": {}},
        {"filter": {"colour": "red"}},
        {"filter": {"state": "lost"}},
        {"filter": {"queue": 5}},
        {"filter": {"text": ["a"]}},
        {"filter": {"group": True}},
        {"letters": [str(uuid4())], "filter": {"state": "open"}},
    ],
)
def test_what_is_meant_must_be_said_once_and_rightly(api, asked) -> None:
    answer = api.post(f"{URL}/discard", {**asked, "reason": "test data"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_a_letter_without_a_reason_is_not_discarded(api, queue) -> None:
    answer = api.post(f"{URL}/discard", {"letters": [make_letter(queue).id]})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "say why" in answer.json()["detail"]


def test_a_letter_is_edited_and_the_original_kept(api, queue) -> None:
    letter = make_letter(queue)
    mended = {"key": str(letter.key), "headers": {}, "payload": {"temperature": 21}, "reason": "unit"}
    edit = api.put(f"{URL}/{letter.id}/message", mended)
    assert edit.status_code == 200
    shown = api.get(f"{URL}/{letter.id}").json()
    assert base64.b64decode(shown["edit"]["payload_base64"]) == b'{"temperature": 21}'
    assert base64.b64decode(shown["payload_base64"]) == b'{"temperature": 21.5}'
    assert api.put(f"{URL}/{letter.id}/message", mended).status_code == 409
    again = {**mended, "seen": shown["edit"]["edited_at"], "raw_key_base64": "/w==", "key": None}
    assert api.put(f"{URL}/{letter.id}/message", again).status_code == 200
    seen = api.get(f"{URL}/{letter.id}").json()["edit"]["edited_at"]
    assert api.delete(f"{URL}/{letter.id}/message", {"seen": seen}).status_code == 204
    assert not DeadLetter.objects.get(id=letter.id).is_edited


@pytest.mark.parametrize(
    "wrong",
    [
        {"payload_base64": "AA=="},
        {"headers": {"a": "%"}},
        {"raw_key_base64": "AA=="},
        {"headers": {"__queue.errors.topic": ""}},
        {"headers": None},
    ],
)
def test_a_message_that_cannot_be_is_refused(api, queue, wrong) -> None:
    letter = make_letter(queue)
    right = {"key": str(letter.key), "headers": {}, "payload": {}}
    answer = api.put(f"{URL}/{letter.id}/message", {**right, **wrong})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_a_letter_is_shown_and_edited_by_its_message_type(api, queue) -> None:
    letter = make_letter(queue, payload=b"\n\x01a\x10\x07")
    url, mended = f"{URL}/{letter.id}", {"headers": {}, "payload": {"id": "b"}}
    assert api.get(url).json()["decoded"] is None
    refused = api.put(f"{url}/message?as=json", mended)
    assert (refused.status_code, "nobody said which message" in refused.json()["detail"]) == (400, True)
    make_type([queue.topic])
    told = {"type": "shop.Order", "unnamed_bytes": 0, "undecodable": None}
    assert api.get(url).json()["decoded"] == {**told, "payload": {"id": "a", "amount": "7"}}
    for wrong in ({"colour": "red"}, [], None, {"id": 7}):
        answer = api.put(f"{url}/message?as=json", {**mended, "payload": wrong})
        assert (answer.status_code, "shop.Order" in answer.json()["detail"]) == (400, True), wrong
    edit = api.put(f"{url}/message?as=json", mended).json()
    assert (edit["payload_base64"], edit["decoded"]) == ("CgFi", {**told, "payload": {"id": "b"}})
    assert api.get(url).json()["edit"] == edit


def test_a_payload_that_is_something_else_says_so(api, queue) -> None:
    make_type([queue.topic])
    found = api.get(f"{URL}/{make_letter(queue).id}").json()
    assert found["decoded"]["payload"] is None
    assert "the payload is not a shop.Order" in found["decoded"]["undecodable"]
    assert base64.b64decode(found["payload_base64"]) == b'{"temperature": 21.5}'


def test_notes(api, queue) -> None:
    letter = make_letter(queue)
    assert api.post(f"{URL}/{letter.id}/note", {"note": "customer was told"}).json() == {"note": "customer was told"}
    group = api.post(f"{GROUPS}/{letter.group_id}/note", {"note": "ticket 4711"}).json()
    assert (group["note"], group["noted_by"]) == ("ticket 4711", "root")
    assert api.post(f"{URL}/{uuid4()}/note", {"note": "x"}).status_code == 404


def test_groups_tell_how_many_whom_and_what_became_of_them(api, queue, installation) -> None:
    make_letters(queue, 2, tenant=installation.tenant)
    make_letter(queue, fingerprint="1" * 16, exception_message="too cold", state=LetterState.REPLAYED)
    [cold] = api.get(GROUPS, {"text": "COLD"}).json()["results"]
    [hot] = api.get(GROUPS, {"open_letters__gte": 1}).json()["results"]
    assert (cold["letters"], cold["open_letters"], hot["letters"], hot["open_letters"]) == (1, 0, 2, 2)
    shown = api.get(f"{GROUPS}/{hot['id']}").json()
    assert shown["tenants"] == [{"tenant": str(installation.tenant.id), "letters": 2, "open_letters": 2}]
    assert shown["last_replay"] is None


def test_a_group_is_discarded_and_restored_whole(api, queue) -> None:
    letters = make_letters(queue, 2)
    group = DeadLetter.objects.get(id=letters[0]).group_id
    assert api.post(f"{GROUPS}/{group}/discard?dry_run=true", {"reason": "x"}).json()["letters"] == 2
    assert api.post(f"{GROUPS}/{group}/discard", {"reason": "known"}).json()["count"] == 2
    assert states_of(letters) == ["discarded"] * 2
    assert api.post(f"{GROUPS}/{group}/restore", {}).json()["count"] == 2
    assert states_of(letters) == ["open"] * 2


def test_letters_are_released_when_their_replay_is_over(api, queue) -> None:
    letters = make_letters(queue, 3)
    group = DeadLetter.objects.get(id=letters[0]).group_id
    ran(start_replay(SYSTEM, letters))
    asked = {"letters": letters[:1], "reason": "the topic was emptied"}
    assert api.post(f"{URL}/release?dry_run=true", asked).json()["letters"] == 1
    assert api.post(f"{URL}/release", asked).json()["count"] == 1
    assert api.post(f"{URL}/release", asked).status_code == 409
    assert api.post(f"{GROUPS}/{group}/release", {"reason": "the same"}).json()["count"] == 2
    assert states_of(letters) == ["open"] * 3


def test_a_letter_is_replayed(api, queue) -> None:
    letter = make_letter(queue)
    answer = api.post(f"{URL}/{letter.id}/replay")
    assert (answer.status_code, answer.json()["total"]) == (202, 1)
    assert api.post(f"{URL}/{letter.id}/replay").status_code == 409


def test_quarantined_letters_are_listed_with_why(api) -> None:
    QuarantinedLetter.objects.create(letter_topic="a.dlq", letter_partition=0, letter_offset=7, error="no queue")
    [row] = api.get(f"{URL}/quarantined").json()["results"]
    assert (row["letter_topic"], row["letter_offset"], row["error"]) == ("a.dlq", 7, "no queue")


def test_people_without_rights_are_refused(installation, queue) -> None:
    letter = make_letter(queue)
    client = APIClient()
    client.force_authenticate(User.objects.create_user("guest", password="secret"))
    assert client.post(f"{URL}/discard", {"letters": [letter.id], "reason": "x"}).status_code == 403
    assert client.get(GROUPS).status_code == 403
    assert states_of([letter.id]) == ["open"]
