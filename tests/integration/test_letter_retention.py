"""Old letters go, with everything that is theirs; the ledger stays."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.dead_letters import discard_letters
from queueapi.actions.letter_edits import edit_letter
from queueapi.actions.letter_recount import recount_letters
from queueapi.actions.letter_retention import purge_letters
from queueapi.actions.replays import start_replay
from queueapi.choices import LedgerAction, LetterState
from queueapi.models import DeadLetter, DeadLetterBody, DeadLetterGroup, LedgerEntry, ReplayItem
from queuecore.messages import QueueMessage
from tests.integration.replay_kit import ran
from tests.letters import make_letter, make_letters
from workers.tasks import purge_letters_task

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def queue(installation):
    return installation.queue


def test_letters_older_than_the_limit_go_and_the_others_stay(queue) -> None:
    now = timezone.now()
    old = make_letters(queue, 5, failed_at=now - timedelta(days=91))
    young = make_letters(queue, 2, failed_at=now - timedelta(days=89), fingerprint="1" * 16)
    assert purge_letters(now - timedelta(days=90), chunk=2) == 5
    assert set(DeadLetter.objects.values_list("id", flat=True)) == set(young)
    assert not DeadLetterBody.objects.filter(letter__in=old).exists()
    assert [group.fingerprint for group in DeadLetterGroup.objects.all()] == ["1" * 16]
    assert recount_letters() == []
    purges = LedgerEntry.objects.filter(action=LedgerAction.PURGE)
    assert sorted(purges.values_list("count", flat=True)) == [1, 2, 2]


def test_what_is_being_replayed_stays(queue) -> None:
    letter = make_letter(queue)
    start_replay(SYSTEM, [letter.id])
    assert purge_letters(timezone.now()) == 0
    DeadLetter.objects.update(state=LetterState.REPLAYED)
    recount_letters(mend=True)
    assert purge_letters(timezone.now()) == 1
    assert not ReplayItem.objects.exists()


def test_what_was_replayed_long_ago_and_never_heard_of_goes(queue) -> None:
    letter = make_letter(queue)
    replay = ran(start_replay(SYSTEM, [letter.id]))
    assert replay.operation.finished_at is not None
    assert purge_letters(replay.operation.finished_at) == 0, "its message may still be handled"
    assert purge_letters(timezone.now()) == 1
    assert recount_letters() == []


def test_a_letter_whose_origin_is_gone_stays_without_it(queue) -> None:
    first = make_letter(queue, state=LetterState.FAILED_AGAIN)
    again = make_letter(queue, replay_of=first, failed_at=timezone.now())
    assert purge_letters(timezone.now() - timedelta(days=1)) == 1
    again.refresh_from_db()
    assert again.replay_of is None


def test_the_ledger_still_names_letters_that_are_gone(queue) -> None:
    letter = make_letter(queue)
    edit_letter(Actor("ada"), letter.id, QueueMessage(None, b"mended", {}))
    discard_letters(Actor("ada"), [letter.id], "test data")
    purge_letters(timezone.now())
    entries = LedgerEntry.objects.filter(letter_id=letter.id).order_by("id")
    assert [entry.action for entry in entries] == [LedgerAction.EDIT, LedgerAction.DISCARD]


def test_the_schedule_removes_what_the_setting_says(queue, settings) -> None:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, letter_retention_days=7)
    make_letter(queue, failed_at=timezone.now() - timedelta(days=8))
    kept = make_letter(queue, failed_at=timezone.now() - timedelta(days=6))
    purge_letters_task()
    assert list(DeadLetter.objects.all()) == [kept]
