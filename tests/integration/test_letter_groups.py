"""Groups of letters, and counters that are always right."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from uuid import uuid4

import pytest
from django.core.management import call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queueapi.actions.actor import SYSTEM
from queueapi.actions.letter_recount import recount_letters
from queueapi.actions.letter_states import change_states
from queueapi.actions.outcomes import mark_dropped, mark_failed_again, mark_outcomes
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import create_tenant
from queueapi.choices import LEGAL_LETTER_CHANGES, LetterState
from queueapi.models import DeadLetter, DeadLetterGroup, DeadLetterTally
from queueapi.selectors import dead_letters as selectors
from queueapi.selectors.dead_letters import count_letters, is_search_bounded, letters_for_lists
from queueapi.selectors.letter_filter import LetterFilter
from queueapi.selectors.letter_groups import largest_open_groups, last_replay, tenants_hit
from tests.letters import FAILED_AT, make_letter, make_letters, states_of

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def queue(installation):
    return installation.queue


def test_letters_of_one_error_are_one_group_for_each_queue(queue) -> None:
    make_letters(queue, 3)
    make_letter(queue, fingerprint="1111222233334444", exception_message="too cold")
    groups = list(DeadLetterGroup.objects.order_by("-letters"))
    assert [(group.letters, group.open_letters, group.exception_message) for group in groups] == [
        (3, 3, "too hot"),
        (1, 1, "too cold"),
    ]


def test_only_legal_changes_are_made(queue) -> None:
    for before, after in product(LetterState, LetterState):
        letter = make_letter(queue, state=before).id
        if after in LEGAL_LETTER_CHANGES[before]:
            assert change_states([letter], before, after) == [letter]
            assert states_of([letter]) == [after]
        else:
            with pytest.raises(ValueError, match="cannot become"):
                change_states([letter], before, after)
    assert recount_letters() == []


def test_letters_that_are_in_another_state_stay_as_they_are(queue) -> None:
    letters = make_letters(queue, 2)
    change_states(letters[:1], LetterState.OPEN, LetterState.DISCARDED)
    assert change_states(letters, LetterState.OPEN, LetterState.REPLAYING) == letters[1:]
    assert states_of(letters) == ["discarded", "replaying"]
    assert recount_letters() == []


steps = st.lists(
    st.tuples(
        st.sampled_from([(before, after) for before, allowed in LEGAL_LETTER_CHANGES.items() for after in allowed]),
        st.sets(st.integers(0, 7), min_size=1),
    ),
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps)
def test_counters_are_right_whatever_is_changed(queue, steps) -> None:
    DeadLetterTally.objects.all().delete()
    DeadLetter.objects.all().delete()
    DeadLetterGroup.objects.all().delete()
    letters = [make_letter(queue, fingerprint=f"{number % 3:016x}").id for number in range(8)]
    for (before, after), chosen in steps:
        change_states([letters[number] for number in chosen], before, after)
    assert recount_letters() == []
    assert count_letters(LetterFilter()).by_state == {
        state: states_of(letters).count(state) for state in LetterState if state in states_of(letters)
    }


def test_counters_that_are_wrong_are_found_and_mended(queue) -> None:
    make_letters(queue, 3)
    DeadLetterTally.objects.update(letters=5)
    DeadLetterGroup.objects.update(letters=9, open_letters=1)
    found = [(miscount.counter.split(" of ")[0], miscount.told, miscount.found) for miscount in recount_letters()]
    assert found == [("open", 5, 3), ("letters", 9, 3), ("open letters", 1, 3)]
    assert len(recount_letters(mend=True)) == 3
    assert recount_letters() == []


def test_the_command_says_what_is_wrong_and_mends_it(queue, capsys) -> None:
    make_letters(queue, 3)
    DeadLetterGroup.objects.update(letters=9)
    with pytest.raises(SystemExit):
        call_command("recount_letters")
    call_command("recount_letters", "--mend")
    call_command("recount_letters")
    said = capsys.readouterr().out
    assert "letters     9      3" in said
    assert said.endswith("They are right now.\nAll counters are right.\n")


def test_whom_an_error_hits(queue, installation) -> None:
    other = create_tenant(SYSTEM, "Other")
    make_letters(queue, 2, tenant=installation.tenant)
    make_letter(queue, tenant=other, state=LetterState.DISCARDED)
    make_letter(queue)
    group = DeadLetterGroup.objects.get()
    hits = {(hit.tenant and hit.tenant.name): (hit.letters, hit.open_letters) for hit in tenants_hit(group)}
    assert hits == {"Greenhouse": (2, 2), "Other": (1, 0), None: (1, 1)}


def test_what_became_of_the_last_replay(queue) -> None:
    letters = make_letters(queue, 3)
    group = DeadLetterGroup.objects.get()
    assert last_replay(group) is None
    others = make_letters(queue, 2, fingerprint="1" * 16)
    start_replay(SYSTEM, letters[:1])
    mark_dropped(letters[:1])
    replay = start_replay(SYSTEM, [*letters, *others])
    start_replay(SYSTEM, make_letters(queue, 1, fingerprint="2" * 16))
    mark_outcomes([*letters[:1], *others])
    mark_failed_again(letters[1:2])
    outcome = last_replay(group)
    assert outcome is not None
    assert (outcome.replay, outcome.letters, outcome.succeeded, outcome.failed) == (replay, 3, 1, 1)


def test_groups_with_most_open_letters_come_first(queue) -> None:
    make_letter(queue, fingerprint="1" * 16)
    make_letters(queue, 2, fingerprint="2" * 16)
    make_letters(queue, 3, fingerprint="3" * 16, state=LetterState.REPLAYED)
    assert [group.fingerprint[0] for group in largest_open_groups()] == ["2", "1"]


# Lists and counts


def test_a_filter_is_read_back_from_what_it_wrote(queue, installation) -> None:
    wanted = LetterFilter(queue.id, installation.tenant.id, LetterState.OPEN, 7, "f" * 16, "r", "C", "t", FAILED_AT)
    wanted = replace(wanted, replay=uuid4())
    assert LetterFilter.of(wanted.as_json()) == wanted
    assert LetterFilter.of({}) == LetterFilter()


def test_letters_are_found_by_everything_a_filter_has(queue, installation) -> None:
    other = make_letter(queue)
    wanted = make_letter(
        queue,
        tenant=installation.tenant,
        state=LetterState.DISCARDED,
        fingerprint="1111222233334444",
        reason="decode",
        exception_class="demo.errors.Unreadable",
        exception_message="no JSON: 4711",
        failed_at=FAILED_AT - timedelta(days=1),
    )
    DeadLetter.objects.filter(pk=other.pk).update(state_changed_at=wanted.state_changed_at + timedelta(seconds=1))
    for asked in (
        {"tenant": installation.tenant.id},
        {"state": LetterState.DISCARDED},
        {"group": wanted.group_id},
        {"fingerprint": "1111222233334444"},
        {"reason": "decode"},
        {"exception_class": "demo.errors.Unreadable"},
        {"text": "json: 47"},
        {"text": str(wanted.id)},
        {"text": str(wanted.key)},
        {"until": FAILED_AT - timedelta(hours=1)},
        {"queue": queue.id, "since": FAILED_AT - timedelta(days=2), "until": FAILED_AT - timedelta(hours=1)},
        {"unchanged_since": wanted.state_changed_at},
    ):
        assert list(letters_for_lists(LetterFilter(**asked))) == [wanted], asked
        if "state" not in asked:
            assert count_letters(LetterFilter(**asked)).by_state == {LetterState.DISCARDED: 1}, asked


def test_letters_of_a_replay_are_counted_to_the_last(queue, monkeypatch) -> None:
    """Of very many, those in one state may all be older than what is counted elsewhere."""
    monkeypatch.setattr(selectors, "COUNTED", 2)
    letters = make_letters(queue, 5)
    replay = start_replay(SYSTEM, letters[:4])
    change_states(letters[:1], LetterState.REPLAYING, LetterState.FAILED_AGAIN)
    counts = count_letters(LetterFilter(replay=replay.pk, state=LetterState.FAILED_AGAIN))
    assert counts.is_exact
    assert counts.by_state == {LetterState.FAILED_AGAIN: 1, LetterState.REPLAYING: 3}


def test_a_text_is_looked_for_in_the_newest_letters(queue, monkeypatch) -> None:
    monkeypatch.setattr(selectors, "SEARCHED", 3)
    letters = make_letters(queue, 5)
    assert {letter.id for letter in letters_for_lists(LetterFilter(text="hot"))} == set(letters[2:])
    assert is_search_bounded(LetterFilter(text="hot"))
    assert not is_search_bounded(LetterFilter())
    # Whoever changes all letters that match means all of them.
    assert LetterFilter(text="hot").rows().count() == 5


def test_what_has_no_tally_is_counted_up_to_a_limit(queue, monkeypatch) -> None:
    monkeypatch.setattr(selectors, "COUNTED", 3)
    make_letters(queue, 5)
    counts = count_letters(LetterFilter(since=FAILED_AT))
    assert (counts.total, counts.is_exact) == (4, False)
    assert count_letters(LetterFilter(queue=queue.id)).total == 5
