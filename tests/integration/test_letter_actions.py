"""What people decide on letters: discard, restore, edit, note; with a plan, a ledger and an audit."""

import threading
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction

from queueapi.actions import dead_letters
from queueapi.actions.actor import Actor
from queueapi.actions.dead_letters import (
    discard_letters,
    plan_discard,
    plan_release,
    plan_restore,
    release_letters,
    restore_letters,
)
from queueapi.actions.letter_edits import edit_letter, message_of, note_group, note_letter, revert_letter
from queueapi.actions.letter_recount import recount_letters
from queueapi.actions.outcomes import mark_outcomes
from queueapi.actions.replays import start_replay
from queueapi.choices import LedgerAction, LetterState
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import AuditEntry, DeadLetter, DeadLetterEdit, DeadLetterGroup, LedgerEntry, Replay
from queueapi.selectors.letter_filter import LetterFilter
from queuecore.errors import PayloadTooLarge
from queuecore.messages import QueueMessage
from queuecore.testing.waiting import DEADLINE_S
from tests.integration.replay_kit import ran
from tests.letters import make_letter, make_letters, states_of

pytestmark = pytest.mark.usefixtures("database")

ADA = Actor("ada")
BOB = Actor("bob")
MENDED = QueueMessage(UUID(int=7), b'{"temperature": 21}', {"producerId": b"ada"})


@pytest.fixture
def queue(installation):
    return installation.queue


@pytest.fixture
def letters(queue) -> list[UUID]:
    return make_letters(queue, 3)


# Discard and restore


def test_discarded_letters_have_a_reason_and_can_be_restored(letters) -> None:
    entry = discard_letters(ADA, letters[:2], " test data ")
    assert states_of(letters) == ["discarded", "discarded", "open"]
    assert (entry.actor_name, entry.action, entry.count, entry.reason) == ("ada", "discard", 2, "test data")
    assert DeadLetter.objects.get(id=letters[0]).decision == entry

    restore_letters(BOB, letters[:1])
    assert states_of(letters) == ["open", "discarded", "open"]
    assert recount_letters() == []


def test_a_filter_takes_what_it_can_and_leaves_the_rest(queue, letters) -> None:
    being_replayed = make_letter(queue, state=LetterState.REPLAYING)
    other = make_letter(queue, fingerprint="1111222233334444")
    entry = discard_letters(ADA, LetterFilter(fingerprint="aaaabbbbccccdddd"), "known")
    assert entry.count == 3
    assert states_of([*letters, being_replayed.id, other.id]) == ["discarded"] * 3 + ["replaying", "open"]
    assert entry.after == {"state": "discarded", "filter": {"fingerprint": "aaaabbbbccccdddd"}}


def test_a_plan_says_what_would_be_done_and_does_nothing(queue, letters) -> None:
    make_letter(queue, state=LetterState.REPLAYED)
    plan = plan_discard(LetterFilter(queue=queue.id))
    assert (plan.letters, plan.refused, plan.why_not) == (3, {LetterState.REPLAYED: 1}, "")
    assert states_of(letters) == ["open"] * 3
    assert plan_restore(LetterFilter(queue=queue.id)).letters == 0


def test_of_letters_that_were_named_all_are_discarded_or_none(queue, letters) -> None:
    busy = make_letter(queue, state=LetterState.REPLAYING).id
    with pytest.raises(NotChangeable, match="1 of the letters is not open but replaying; reload the list"):
        discard_letters(ADA, [*letters, busy], "test data")
    with pytest.raises(NotChangeable, match="1 of the letters does not exist"):
        discard_letters(ADA, [*letters, uuid4()], "test data")
    assert states_of(letters) == ["open"] * 3
    assert not LedgerEntry.objects.exists()


def test_who_comes_second_hears_who_was_first_and_why(letters) -> None:
    discard_letters(ADA, letters, "test data")
    with pytest.raises(NotChangeable, match="3 of the letters are not open but discarded, by ada: test data"):
        discard_letters(BOB, letters, "duplicates")


def test_of_two_at_the_same_time_one_loses(letters) -> None:
    outcomes: list[object] = []
    start = threading.Barrier(2)

    def decide(actor: Actor) -> None:
        start.wait()
        try:
            outcomes.append(discard_letters(actor, letters, "mine").count)
        except NotChangeable as error:
            outcomes.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=decide, args=[actor]) for actor in (ADA, BOB)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [3, "not_changeable"]
    assert recount_letters() == []


@pytest.mark.parametrize(("reason", "refusal"), [(" ", "say why the letters are discarded"), ("x" * 2001, "at most")])
def test_a_reason_must_be_given_and_kept(letters, reason, refusal) -> None:
    with pytest.raises(InvalidInput, match=refusal):
        discard_letters(ADA, letters, reason)


def test_nothing_chosen_is_refused(queue, letters) -> None:
    with pytest.raises(NotChangeable, match="no letter was chosen"):
        discard_letters(ADA, [], "test data")
    with pytest.raises(NotChangeable, match="no letter was chosen"):
        discard_letters(ADA, LetterFilter(text="no such error"), "test data")


def test_too_many_at_once_are_refused_with_a_way_out(letters, monkeypatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_AT_ONCE", 2)
    with pytest.raises(NotChangeable, match="these are 3 letters, and 2 are the most at once; narrow the filter"):
        discard_letters(ADA, LetterFilter(state=LetterState.OPEN), "test data")


def test_decisions_are_audited_with_who_and_from_where(letters) -> None:
    user = User.objects.create_user("carol")
    discard_letters(Actor("carol", user, "127.0.0.1"), letters[:1], "test data")
    entry = AuditEntry.objects.get(action="discard")
    assert (entry.actor, entry.address, entry.object_id) == (user, "127.0.0.1", str(letters[0]))
    assert entry.after is not None
    assert entry.after["reason"] == "test data"


def test_a_replay_does_not_wait_for_letters_that_somebody_is_about_to_change(database, queue, letters) -> None:
    """It takes letters in another order than everyone else: who waits might wait in a circle."""
    if database == "sqlite":
        pytest.skip("one writes at a time there, and nobody holds a single letter")
    deciding, collected = threading.Event(), threading.Event()

    def decide() -> None:
        try:
            with transaction.atomic():
                DeadLetter.objects.select_for_update().get(id=letters[1])
                deciding.set()
                assert collected.wait(DEADLINE_S)
        finally:
            connections.close_all()

    thread = threading.Thread(target=decide)
    thread.start()
    assert deciding.wait(DEADLINE_S)
    try:
        replay = start_replay(ADA, LetterFilter(queue=queue.id))
    finally:
        collected.set()
        thread.join()
    assert replay.operation.total == 2
    assert states_of(letters) == ["replaying", "open", "replaying"]
    assert recount_letters() == []


# Release


@pytest.fixture
def sent(queue, letters) -> Replay:
    """A replay that is over, whose messages nobody has handled."""
    return ran(start_replay(ADA, letters))


def test_letters_whose_messages_are_gone_are_released_and_can_be_replayed(letters, sent) -> None:
    assert plan_release(LetterFilter(state=LetterState.REPLAYING)).letters == 3
    entry = release_letters(ADA, letters[:2], "the topic was emptied")
    assert states_of(letters) == ["open", "open", "replaying"]
    assert (entry.action, entry.count, entry.before) == ("restore", 2, {"state": "replaying"})
    assert DeadLetter.objects.get(id=letters[0]).decision == entry
    assert recount_letters() == []
    assert ran(start_replay(ADA, letters[:2])).sent == 2
    assert DeadLetter.objects.get(id=letters[0]).replay_count == 1


def test_what_is_still_being_sent_is_not_released(letters) -> None:
    start_replay(ADA, letters)
    with pytest.raises(NotChangeable, match="3 of the letters are still replaying: wait until that is over"):
        release_letters(ADA, letters, "impatient")
    assert plan_release(LetterFilter(state=LetterState.REPLAYING)).letters == 0
    assert states_of(letters) == ["replaying"] * 3


def test_who_releases_says_how_they_know(letters, sent) -> None:
    with pytest.raises(InvalidInput, match="say how you know that the messages will not be handled"):
        release_letters(ADA, letters, " ")


def test_a_message_that_is_handled_all_the_same_is_heard_of(letters, sent) -> None:
    release_letters(ADA, letters, "the topic was emptied")
    assert mark_outcomes(letters[:1]) == 1
    assert states_of(letters) == ["replayed", "open", "open"]
    sent.refresh_from_db()
    assert (sent.sent, sent.succeeded) == (3, 1)
    assert recount_letters() == []


# Edit


def test_an_edited_letter_keeps_its_original(letters) -> None:
    edit_letter(ADA, letters[0], MENDED, reason="unit was missing")
    letter = DeadLetter.objects.select_related("body").get(id=letters[0])
    assert message_of(letter) == MENDED
    assert bytes(letter.body.payload) == b'{"temperature": 21.5}'
    entry = LedgerEntry.objects.get()
    assert (entry.action, entry.letter_id, entry.reason) == (LedgerAction.EDIT, letters[0], "unit was missing")
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["payload_size"], entry.after["payload_size"]) == (21, 19)


def test_going_back_to_the_original(letters) -> None:
    edit = edit_letter(ADA, letters[0], MENDED)
    revert_letter(ADA, letters[0], seen=edit.edited_at)
    letter = DeadLetter.objects.select_related("body").get(id=letters[0])
    assert not letter.is_edited
    assert message_of(letter).data == b'{"temperature": 21.5}'
    assert not DeadLetterEdit.objects.exists()
    assert LedgerEntry.objects.count() == 2


def test_nobody_overwrites_an_edit_they_have_not_seen(letters) -> None:
    first = edit_letter(ADA, letters[0], MENDED)
    with pytest.raises(NotChangeable, match=r"ada has edited the letter at .*; load it anew"):
        edit_letter(BOB, letters[0], MENDED)
    edit_letter(BOB, letters[0], MENDED, seen=first.edited_at)
    with pytest.raises(NotChangeable, match="bob has edited"):
        revert_letter(ADA, letters[0], seen=first.edited_at)
    last = DeadLetterEdit.objects.get()
    revert_letter(ADA, letters[0], seen=last.edited_at)
    with pytest.raises(NotChangeable, match="gone back to the original"):
        edit_letter(BOB, letters[0], MENDED, seen=last.edited_at)


@pytest.mark.parametrize(
    ("state", "refusal"),
    [(LetterState.REPLAYING, "only open letters"), (LetterState.DISCARDED, "restore it first")],
)
def test_only_open_letters_are_edited(queue, state, refusal) -> None:
    letter = make_letter(queue, state=state)
    with pytest.raises(NotChangeable, match=refusal):
        edit_letter(ADA, letter.id, MENDED)


@pytest.mark.parametrize(
    ("message", "error", "refusal"),
    [
        (MENDED._replace(headers={"__queue.replay.id": b""}), InvalidInput, "Switchyard's own"),
        (MENDED._replace(headers={"a\0b": b""}), InvalidInput, "printable"),
        (MENDED._replace(headers={"": b""}), InvalidInput, "printable"),
        (MENDED._replace(headers={"large": b"x" * 70_000}), PayloadTooLarge, "65,536 is the most"),
        (MENDED._replace(data=b"x" * 2**20), PayloadTooLarge, "is the most"),
    ],
)
def test_what_nobody_could_send_is_refused(letters, message, error, refusal) -> None:
    with pytest.raises(error, match=refusal):
        edit_letter(ADA, letters[0], message)


def test_keys_that_are_no_uuid_are_kept(letters) -> None:
    edit_letter(ADA, letters[0], MENDED._replace(key=b"\xff\0"))
    assert message_of(DeadLetter.objects.get(id=letters[0])).key == b"\xff\0"


# Notes


def test_notes_on_letters_and_groups_are_in_the_ledger(letters) -> None:
    note_letter(ADA, letters[0], "customer was told")
    group = note_group(BOB, DeadLetterGroup.objects.get().id, "sensor firmware 1.2; ticket 4711")
    assert DeadLetter.objects.get(id=letters[0]).note == "customer was told"
    assert (group.note, group.noted_by) == ("sensor firmware 1.2; ticket 4711", "bob")
    assert list(LedgerEntry.objects.order_by("id").values_list("letter_id", "group_id")) == [
        (letters[0], None),
        (None, group.id),
    ]


def test_the_same_note_again_is_no_news(letters) -> None:
    note_letter(ADA, letters[0], "customer was told")
    note_letter(BOB, letters[0], "customer was told")
    assert LedgerEntry.objects.get().actor_name == "ada"
