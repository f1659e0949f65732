"""What a replay would do, before it does it: over REST too."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM
from queueapi.actions.dead_letters import discard_letters
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queues import create_queue
from queueapi.actions.replays import start_replay
from queueapi.choices import LetterState, QueueState
from queueapi.errors import NotReplayable
from queueapi.models import DeadLetter, Queue, Replay
from queueapi.replaying import ReplaySettings
from queueapi.selectors import replay_targets
from queueapi.selectors.letter_filter import LetterFilter
from queueapi.selectors.replay_plans import plan_replay
from queuecore.hashing import partition_of
from tests.instances import announce
from tests.integration.replay_kit import FAILED_AT_MS, make_letters, ran, sent_letters, states

URL = "/api/v1/replays"


@pytest.fixture
def queue(installation) -> Queue:
    return installation.queue


@pytest.fixture
def api(installation) -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


def told(plan) -> dict[str, int]:
    return {refusal.reason: refusal.count for refusal in plan.refused}


def test_it_says_how_many_go_where_and_how_long_that_takes(queue) -> None:
    make_letters(queue, 10, partitions=3)
    plan = plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings(rate_per_s=4))
    assert (plan.letters, plan.duration_s) == (10, 2.5)
    assert [(count.queue, count.partition, count.letters) for count in plan.targets] == [
        (queue, 0, 4),
        (queue, 1, 3),
        (queue, 2, 3),
    ]
    assert plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings()).duration_s is None


def test_another_queue_gets_them_by_their_keys(queue) -> None:
    other = create_queue(SYSTEM, queue.tenant, name="Other", topic="other", handler="log", partitions=5)
    key = uuid4()
    make_letters(queue, 7, key=key)
    plan = plan_replay(LetterFilter(queue=queue.id), other, ReplaySettings())
    [count] = plan.targets
    assert (count.queue, count.partition, count.letters) == (other, partition_of(key, 5), 7)
    assert "the letters are handled by Other's handler log, not by that of the queue they came from" in plan.warnings


def test_letters_that_were_replayed_too_often_are_refused_by_name(queue) -> None:
    [letter, _] = make_letters(queue, 1, replay_count=5), make_letters(queue, 1, first=1, replay_count=4)
    plan = plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings())
    assert plan.letters == 1
    [refusal] = plan.refused
    assert refusal.reason == "were replayed 5 times or more; mend their cause, or allow more replays"
    assert list(refusal.examples) == letter
    assert plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings(max_replays=6)).letters == 2
    with pytest.raises(NotReplayable, match="were replayed 5 times or more"):
        start_replay(SYSTEM, letter)


def test_a_letter_without_its_payload_is_refused_until_it_is_given_one(queue) -> None:
    [letter] = make_letters(queue, 1)
    DeadLetter.objects.update(payload_missing="the side store has removed it")
    selection = LetterFilter(queue=queue.id)
    plan = plan_replay(selection, None, ReplaySettings())
    assert (plan.letters, told(plan)) == (0, {"have lost their payload; edit them to give them another": 1})
    with pytest.raises(NotReplayable, match="1 have lost their payload"):
        start_replay(SYSTEM, selection)
    assert states([letter]) == "o"
    DeadLetter.objects.update(is_edited=True)
    assert plan_replay(selection, None, ReplaySettings()).letters == 1


def test_a_tenants_own_queue_takes_no_others_letters(installation, queue) -> None:
    own = create_queue(SYSTEM, installation.tenant, name="Own", topic="own", handler="log")
    letters = make_letters(queue, 3)
    DeadLetter.objects.filter(id=letters[0]).update(tenant=installation.tenant)
    plan = plan_replay(letters, own, ReplaySettings())
    assert plan.letters == 1
    assert list(told(plan)) == [f"are not of tenant {installation.tenant.id}, whose messages Own takes alone"]


def test_named_letters_that_are_not_open_say_why(queue) -> None:
    letters = make_letters(queue, 4)
    closed = [LetterState.REPLAYED, LetterState.DISCARDED, LetterState.FAILED_AGAIN]
    for letter, state in zip(letters, closed, strict=False):
        DeadLetter.objects.filter(id=letter).update(state=state)
    plan = plan_replay([*letters, uuid4()], None, ReplaySettings())
    assert plan.letters == 1
    assert told(plan) == {
        "were replayed, and their handler succeeded": 1,
        "failed again, and live on as the letters that their replays became": 1,
        "were discarded; restore them first": 1,
        "do not exist; reload the list": 1,
    }


def test_it_warns_of_what_would_keep_letters_waiting(queue) -> None:
    make_letters(queue, 11)
    pause_queue(SYSTEM, queue, reason="the database is being moved")
    plan = plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings())
    assert plan.warnings == (
        "paused is everything of Telemetry: the database is being moved",
        "nobody consumes at the moment: what is sent waits, and so does each step of the ramp",
        "without a rate or a ramp all letters may be sent before the first failure is known",
    )


def test_it_does_not_warn_without_reason(queue) -> None:
    make_letters(queue, 11)
    announce("core-1")
    plan = plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings(ramp=(1,)))
    assert plan.warnings == ()


class TestOfVeryManyLetters:
    """Tallies tell how many there are; those that are not sent, or go elsewhere than others, are looked up."""

    @pytest.fixture(autouse=True)
    def many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(replay_targets, "COUNTED", 3)

    def test_it_says_how_many_go_to_each_queue(self, queue) -> None:
        make_letters(queue, 10, partitions=3)
        plan = plan_replay(LetterFilter(queue=queue.id), None, ReplaySettings())
        assert [(count.queue, count.partition, count.letters) for count in plan.targets] == [(queue, None, 10)]
        assert (plan.letters, plan.changes[0].what) == (10, "the state of 10 letters, for Telemetry")

    def test_so_it_does_of_those_of_a_time(self, queue) -> None:
        make_letters(queue, 10, partitions=3)
        since = datetime.fromtimestamp((FAILED_AT_MS + 2) / 1000, UTC)
        plan = plan_replay(LetterFilter(since=since), None, ReplaySettings())
        assert [(count.partition, count.letters) for count in plan.targets] == [(None, 8)]

    def test_what_is_refused_is_not_counted_along(self, queue) -> None:
        [lost, edited, twice, *_] = make_letters(queue, 9)
        make_letters(queue, 1, first=9, replay_count=5)
        DeadLetter.objects.filter(id__in=[lost, edited, twice]).update(payload_missing="it was removed")
        DeadLetter.objects.filter(id=edited).update(is_edited=True)
        DeadLetter.objects.filter(id=twice).update(replay_count=7)
        plan = plan_replay(LetterFilter(), None, ReplaySettings())
        assert plan.letters == 7
        assert told(plan) == {
            "were replayed 5 times or more; mend their cause, or allow more replays": 2,
            "have lost their payload; edit them to give them another": 2,
        }

    def test_a_queue_that_is_being_deleted_gets_none(self, installation, queue) -> None:
        going = create_queue(SYSTEM, installation.tenant, name="Going", topic="going", handler="log")
        make_letters(queue, 4)
        make_letters(going, 4)
        Queue.objects.filter(pk=going.pk).update(state=QueueState.DELETING)
        plan = plan_replay(LetterFilter(), None, ReplaySettings())
        assert (plan.letters, [count.queue for count in plan.targets]) == (4, [queue])
        assert list(told(plan).values()) == [4]

    def test_letters_of_others_go_by_their_keys(self, queue) -> None:
        [foreign, *_] = make_letters(queue, 5, partitions=3)
        DeadLetter.objects.filter(id=foreign).update(origin="spring", topic=queue.partition_info(1).full_topic_name)
        plan = plan_replay(LetterFilter(), None, ReplaySettings())
        assert [(count.partition, count.letters) for count in plan.targets] == [(None, 4), (1, 1)]

    def test_some_queues_are_told_and_how_many_more_there_are(self, installation, queue, monkeypatch) -> None:
        monkeypatch.setattr(replay_targets, "_TOLD", 1)
        other = create_queue(SYSTEM, installation.tenant, name="Other", topic="other", handler="log")
        make_letters(queue, 2)
        make_letters(other, 3)
        plan = plan_replay(LetterFilter(), None, ReplaySettings())
        assert (plan.letters, [count.queue for count in plan.targets], plan.other_queues) == (5, [other], 1)

    def test_other_states_than_open_have_nothing_to_send(self, queue) -> None:
        discard_letters(SYSTEM, make_letters(queue, 5), "test data")
        plan = plan_replay(LetterFilter(state=LetterState.DISCARDED), None, ReplaySettings())
        assert (plan.letters, told(plan)) == (0, {"were discarded; restore them first": 5})


def test_of_many_queues_that_are_paused_some_are_named(installation) -> None:
    for number in range(12):
        queue = create_queue(SYSTEM, installation.tenant, name=f"Q{number}", topic=f"q{number}", handler="log")
        make_letters(queue, 1)
        pause_queue(SYSTEM, queue, reason="the database is being moved")
    announce("core-1")
    plan = plan_replay(LetterFilter(), None, ReplaySettings(ramp=(1,)))
    assert len(plan.warnings) == 11
    assert plan.warnings[-1] == "paused are more of the queues than these 10, or parts of them"


class TestRest:
    def test_a_dry_run_changes_nothing(self, api, queue) -> None:
        letters = make_letters(queue, 3)
        answer = api.post(f"{URL}?dry_run=true", {"filter": {"queue": str(queue.id)}, "rate_per_s": 2})
        assert answer.status_code == 200
        assert answer.json()["letters"] == 3
        assert answer.json()["duration_s"] == 1.5
        assert answer.json()["targets"] == [{"queue": str(queue.id), "name": "Telemetry", "partition": 0, "letters": 3}]
        assert states(letters) == "ooo"

    def test_a_replay_of_a_filter_begins_with_a_ramp(self, api, queue) -> None:
        make_letters(queue, 3)
        answer = api.post(URL, {"filter": {"queue": str(queue.id)}, "reason": "mended"})
        assert answer.status_code == 202
        replay = answer.json()
        assert (replay["state"], replay["total"], replay["ramp"]) == ("pending", 3, [1, 10, 100])
        assert replay["created_by"] == "root"
        assert api.get(f"{URL}/{replay['id']}").json() == replay
        assert [row["id"] for row in api.get(URL).json()["results"]] == [replay["id"]]

    def test_they_are_listed_page_by_page(self, api, queue) -> None:
        replays = [api.post(URL, {"letters": [str(letter)]}).json()["id"] for letter in make_letters(queue, 3)]
        listed, following = [], f"{URL}?page_size=1"
        while following:
            page = api.get(following).json()
            listed += [row["id"] for row in page["results"]]
            following = page["next"]
        assert listed == replays[::-1]

    def test_named_letters_are_sent_at_once(self, api, queue) -> None:
        letters = make_letters(queue, 3)
        replay = api.post(URL, {"letters": [str(letter) for letter in letters[:2]], "abort_ratio": None}).json()
        assert (replay["ramp"], replay["abort_ratio"], replay["abort_min"]) == ([], None, 10)
        ran(Replay.objects.get(id=replay["id"]))
        assert sent_letters(queue) == letters[:2]
        items = api.get(f"{URL}/{replay['id']}/items").json()["results"]
        assert [(item["letter"], item["state"]) for item in items] == [(str(letter), "sent") for letter in letters[:2]]
        assert api.get(f"{URL}/{replay['id']}/items?state=skipped").json()["results"] == []

    def test_it_is_paused_resumed_and_cancelled(self, api, queue) -> None:
        letters = make_letters(queue, 3)
        replay = api.post(URL, {"filter": {"state": "open"}}).json()
        expected = {"pause": (True, "pending"), "resume": (False, "pending"), "cancel": (False, "cancelling")}
        for verb, then in expected.items():
            answer = api.post(f"{URL}/{replay['id']}/{verb}")
            assert answer.status_code == 202
            assert (answer.json()["paused"], answer.json()["state"]) == then
        ran(Replay.objects.get(id=replay["id"]))
        assert states(letters) == "ooo"
        answer = api.post(f"{URL}/{replay['id']}/pause")
        assert (answer.status_code, answer.json()["code"]) == (409, "already_final")

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({}, "non_field_errors"),
            ({"letters": [], "filter": {}}, "letters"),
            ({"filter": {}}, "filter"),
            ({"filter": {"colour": "red"}}, "filter"),
            ({"filter": {"state": "open"}, "target": str(uuid4())}, "target"),
            ({"filter": {"state": "open"}, "rate_per_s": "fast"}, "rate_per_s"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, api, wrong, field) -> None:
        answer = api.post(URL, wrong)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
        assert field in answer.json()["errors"]

    def test_settings_that_make_no_sense_are_explained(self, api) -> None:
        answer = api.post(URL, {"filter": {"state": "open"}, "ramp": [10, 1]})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
        assert "the ramp is 10, 1" in answer.json()["detail"]

    def test_where_nothing_can_be_replayed_it_says_so(self, api) -> None:
        answer = api.post(URL, {"filter": {"state": "open"}})
        assert (answer.status_code, answer.json()["code"]) == (409, "not_replayable")
