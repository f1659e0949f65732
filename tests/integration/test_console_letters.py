"""Dead letters in the console: groups, the ledger, mending a message, and replays with a rate, a ramp and a filter."""

import html
import json
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.dead_letters import discard_letters
from queueapi.actions.letter_edits import edit_letter, message_of, note_group, revert_letter
from queueapi.actions.letter_states import change_states
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import LetterState
from queueapi.models import (
    DeadLetter,
    DeadLetterBody,
    DeadLetterEdit,
    DeadLetterGroup,
    DeadLetterTrend,
    LedgerEntry,
    Operation,
    Queue,
    Replay,
)
from queueapi.selectors import letter_owners
from queueapi.selectors.letter_filter import LetterFilter
from queueapi.selectors.letter_owners import owners_of
from queuecore.messages import QueueMessage
from tests.console_pages import queries_of
from tests.letters import make_letter, states_of
from tests.page_forms import confirm, fields_of, first_button
from tests.page_offers import Page

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")


def text(answer: Any) -> str:
    assert answer.status_code == 200
    return str(answer.content.decode())


def typed(client: Any, letter: DeadLetter, **changes: str) -> dict[str, str]:
    """What the form has, as a browser would send it."""
    context = client.get(reverse("edit_letter", args=[letter.pk])).context
    shown = {name: context["form"][name].value() or "" for name in context["form"].fields}
    return {**shown, "seen": context["seen"], **changes}


def compared(client: Any, letter: DeadLetter, typed: dict[str, str]) -> dict[str, str]:
    """What the form has once the difference was shown."""
    answer = client.post(reverse("edit_letter", args=[letter.pk]), {**typed, "plan": "yes"})
    return {**typed, "planned": answer.context["planned"]}


def test_groups_tell_how_letters_come_whom_they_hit_and_what_was_done(admin_client, queue) -> None:
    letters = [make_letter(queue, tenant=create_tenant(SYSTEM, name)) for name in ("Greenhouse", "Harbour")]
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for back, number in ((0, 2), (3, 5)):
        DeadLetterTrend.objects.create(
            queue=queue, fingerprint=letters[0].fingerprint, at=hour - timedelta(hours=back), letters=number
        )
    note_group(SYSTEM, letters[0].group_id, "billing is away")
    replay = start_replay(SYSTEM, [letters[0].pk])
    answer = admin_client.get(reverse("dead_letter_groups"))
    [row] = answer.context["page"].object_list
    assert (row.trend[-1], row.trend[-4], sum(row.trend)) == (2, 5, 7)
    assert (row.tenants, row.last_replay) == (2, replay)
    page = text(answer)
    assert "Last 24 hours: 7 letters, at most 5 in an hour, 2 in this one" in page
    assert "billing is away" in page
    assert reverse("operation", args=[replay.operation_id]) in page


@pytest.mark.parametrize(("hours", "told"), [(1, "not counted yet"), (48, "none in 24 hours")])
def test_what_the_pipeline_has_not_counted_yet_is_not_called_nothing(admin_client, queue, hours, told) -> None:
    letter = make_letter(queue)
    DeadLetterGroup.objects.update(last_seen=timezone.now() - timedelta(hours=hours))
    group = f"{reverse('dead_letters')}?state=open&group={letter.group_id}"
    for address in (reverse("overview"), reverse("dead_letter_groups"), reverse("dead_letters"), group):
        assert told in text(admin_client.get(address)), address


def test_groups_can_be_narrowed(admin_client, queue) -> None:
    make_letter(queue, exception_class="pkg.TooHot", fingerprint="1" * 16)
    make_letter(queue, exception_class="pkg.TooCold", fingerprint="2" * 16, state=LetterState.REPLAYED)

    def found(**asked: str) -> list[str]:
        rows = admin_client.get(reverse("dead_letter_groups"), asked).context["page"].object_list
        return sorted(row.group.exception_class for row in rows)

    assert found() == ["pkg.TooCold", "pkg.TooHot"]
    assert found(show="open") == ["pkg.TooHot"]
    assert found(q="cold") == found(q="2" * 16) == ["pkg.TooCold"]
    assert found(queue="main") == found(queue=str(queue.pk)) == found()
    assert "There is no queue" in text(admin_client.get(reverse("dead_letter_groups"), {"queue": "nobody's"}))


def test_the_overview_leads_to_replaying_a_whole_group_in_three_clicks(admin_client, queue) -> None:
    letters = [make_letter(queue) for _ in range(3)]
    group = f"{reverse('dead_letters')}?state=open&amp;group={letters[0].group_id}"
    assert group in text(admin_client.get(reverse("overview")))
    listed = text(admin_client.get(group.replace("&amp;", "&")))
    assert "Replay the group…" in listed
    plan = admin_client.post(reverse("replay_letters"), {"group": letters[0].group_id})
    assert "3 messages will be sent again" in text(plan)
    started = confirm(admin_client, reverse("replay_letters"), {"group": letters[0].group_id, "ramp": "1, 2"})
    replay = Replay.objects.get()
    assert started.redirect_chain == [(reverse("operation", args=[replay.operation_id]), 302)]
    assert replay.ramp == [1, 2]


def test_the_plan_of_a_replay_says_whose_letters_they_are(admin_client, queue) -> None:
    greenhouse, harbour = (create_tenant(SYSTEM, name) for name in ("Greenhouse", "Harbour"))
    for tenant in (greenhouse, harbour, harbour, None):
        letter = make_letter(queue, tenant=tenant)
    told = r"Harbour</strong> 2, <strong>[^<]*</strong> 1, <strong>[^<]*</strong> 1\."
    asked = {"group": letter.group_id}
    assert re.search(told, text(admin_client.post(reverse("replay_letters"), asked)))
    assert "<strong>no tenant's</strong> 1" in html.unescape(text(admin_client.post(reverse("replay_letters"), asked)))


def test_of_very_many_letters_the_tallies_say_whose_they_are(queue, monkeypatch) -> None:
    monkeypatch.setattr(letter_owners, "COUNTED", 1)
    harbour = create_tenant(SYSTEM, "Harbour")
    for tenant in (harbour, harbour, None):
        make_letter(queue, tenant=tenant)
    wanted = LetterFilter(queue=queue.pk)
    with CaptureQueriesContext(connection) as asked:
        owners = owners_of(wanted, wanted.rows(), 3)
    assert owners is not None
    assert dict(owners.shown) == {harbour: 2, None: 1}
    assert not [query for query in asked if '"queueapi_deadletter"' in query["sql"]]
    assert owners_of(LetterFilter(since=timezone.now()), wanted.rows(), 3) is None


def test_how_many_letters_are_newer_is_told_beside_rows_that_stay(admin_client, queue) -> None:
    shown = make_letter(queue)
    page = admin_client.get(reverse("dead_letters"), {"state": "open", "queue": "Main"})
    assert 'id="watch"' in text(page)
    assert 'id="watch"' not in text(admin_client.get(reverse("dead_letters"), {"sort": "queue"}))

    def told(**asked: str) -> str:
        return text(admin_client.get(reverse("dead_letters"), asked, headers={"HX-Request": "true"}))

    asked = {"state": "open", "newer_than": shown.failed_at.isoformat()}
    assert "No new letters" in told(**asked)
    for state in (LetterState.OPEN, LetterState.OPEN, LetterState.REPLAYED):
        make_letter(queue, failed_at=shown.failed_at + timedelta(seconds=1), state=state)
    assert "2 new letters: show them" in told(**asked)
    assert f'href="{reverse("dead_letters")}?state=open"' in told(**asked)
    for no_time in ("a minute ago", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "2026-02-30T00:00:00Z"):
        assert "3 new letters" in told(state="open", newer_than=no_time)


def test_a_group_that_is_gone_has_no_letters(admin_client, queue) -> None:
    make_letter(queue)
    for group in ("7777", str(2**63)):
        assert admin_client.get(reverse("dead_letters"), {"group": group}).status_code == 200
    assert not admin_client.get(reverse("dead_letters"), {"group": "7777"}).context["page"].object_list


@pytest.mark.parametrize("name", ["replay_letters", "discard_letters"])
def test_no_plan_asks_oftener_than_a_page_may(admin_client, queue, name) -> None:
    letters = [make_letter(queue, tenant=create_tenant(SYSTEM, f"Tenant {number}")) for number in range(3)]
    for chosen in ({"letter": [letter.pk for letter in letters]}, {"filter": "{}"}, {"filter": '{"text": "hot"}'}):
        assert queries_of(lambda chosen=chosen: admin_client.post(reverse(name), chosen)) <= 15, chosen


def test_a_replay_is_gone_about_as_was_chosen(admin_client, queue) -> None:
    letter = make_letter(queue)
    asked = {"letter": str(letter.pk), "rate": "0.5", "ramp": "", "abort_percent": "25"}
    assert "At this rate sending takes 2 s" in text(admin_client.post(reverse("replay_letters"), asked))
    assert not Replay.objects.exists()
    confirm(admin_client, reverse("replay_letters"), {**asked, "reason": "billing is back"})
    replay = Replay.objects.get()
    assert (replay.rate_per_s, replay.ramp, replay.abort_ratio) == (0.5, [], 0.25)
    assert LedgerEntry.objects.get().reason == "billing is back"
    page = text(admin_client.get(reverse("operation", args=[replay.operation_id])))
    assert "At most 0.5 letters a second" in page
    assert "<strong>1</strong> not sent yet" in page


def test_a_replay_is_carried_out_as_its_plan_was_shown_and_not_otherwise(admin_client, queue) -> None:
    letter = make_letter(queue)
    plan = text(admin_client.post(reverse("replay_letters"), {"letter": str(letter.pk)}))
    assert first_button(plan, 'id="replay"') == "Show the plan anew"
    sent = fields_of(plan, 'id="replay"')
    anew = admin_client.post(reverse("replay_letters"), {**sent, "rate": "0.5", "confirm": "yes"})
    assert "This is not what the plan before was for" in text(anew)
    assert "At this rate sending takes 2 s" in text(anew)
    assert not Replay.objects.exists()
    # A reason is no part of it.
    sent = {**fields_of(text(anew), 'id="replay"'), "reason": "billing is back", "confirm": "yes"}
    assert admin_client.post(reverse("replay_letters"), sent).status_code == 302
    assert Replay.objects.get().rate_per_s == 0.5


def test_a_replay_whose_plan_nobody_saw_is_planned(admin_client, queue) -> None:
    letter = make_letter(queue)
    page = text(admin_client.post(reverse("replay_letters"), {"letter": str(letter.pk), "confirm": "yes"}))
    assert "1 message will be sent again" in page
    assert not Replay.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"ramp": "10, 1"}, "each larger"), ({"ramp": "many"}, "whole numbers"), ({"rate": "-1"}, "greater than")],
)
def test_what_makes_no_sense_is_refused_and_kept(admin_client, queue, wrong, told) -> None:
    letter = make_letter(queue)
    asked = {"letter": str(letter.pk), "reason": "typed before", **wrong}
    page = text(confirm(admin_client, reverse("replay_letters"), asked))
    assert told in page
    assert "typed before" in page
    assert not Replay.objects.exists()


def test_all_that_a_filter_leaves_are_replayed_discarded_and_restored(admin_client, queue) -> None:
    other = Queue.objects.create(tenant=ensure_system_tenant(), name="Other", topic="other", handler="log")
    letters = [make_letter(queue).pk for _ in range(30)]
    spared = make_letter(other)
    page = admin_client.get(reverse("dead_letters"), {"state": "open", "queue": "Main"})
    assert "Replay all 30…" in text(page)
    chosen = {"filter": page.context["all_matching"]["filter"], "reason": "test data", "confirm": "yes"}
    assert "30 messages will be sent again" in text(
        admin_client.post(reverse("replay_letters"), {"filter": chosen["filter"]})
    )
    admin_client.post(reverse("discard_letters"), chosen)
    assert set(DeadLetter.objects.filter(state=LetterState.DISCARDED).values_list("pk", flat=True)) == set(letters)
    spared.refresh_from_db()
    assert spared.state == LetterState.OPEN
    page = admin_client.get(reverse("dead_letters"), {"state": "discarded"})
    assert "Restore all 30…" in text(page)
    admin_client.post(reverse("restore_letters"), {"filter": page.context["all_matching"]["filter"], "confirm": "yes"})
    assert not DeadLetter.objects.filter(state=LetterState.DISCARDED).exists()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("replay_letters", LetterState.OPEN, LetterState.REPLAYING),
        ("discard_letters", LetterState.OPEN, LetterState.DISCARDED),
        ("restore_letters", LetterState.DISCARDED, LetterState.OPEN),
    ],
)
@pytest.mark.parametrize("is_group", [True, False])
def test_letters_that_come_after_the_plan_are_left_as_they_are(
    admin_client, queue, name, before, after, is_group
) -> None:
    planned = [make_letter(queue, state=before) for _ in range(3)]
    chosen = {"group": planned[0].group_id} if is_group else {"filter": json.dumps({"queue": str(queue.pk)})}
    plan = admin_client.post(reverse(name), chosen)
    assert 'name="planned_at"' in text(plan)
    assert "3 letters</button>" in text(plan)
    # It failed long before: what counts is when it came.
    late = make_letter(queue, state=before)
    confirmed = {**fields_of(text(plan), 'name="planned_at"'), "reason": "known", "confirm": "yes"}
    assert admin_client.post(reverse(name), confirmed).status_code == 302
    assert states_of([letter.pk for letter in planned]) == [after] * 3
    assert states_of([late.pk]) == [before]
    assert "1 letter</button>" in text(admin_client.post(reverse(name), {"group": late.group_id}))


def test_what_others_discard_after_the_plan_is_not_restored(admin_client, queue) -> None:
    discarded, opened = make_letter(queue, state=LetterState.DISCARDED), make_letter(queue)
    plan = admin_client.post(reverse("restore_letters"), {"group": opened.group_id})
    discard_letters(SYSTEM, [opened.pk], "by somebody else")
    confirmed = {"group": opened.group_id, "planned_at": plan.context["planned_at"], "confirm": "yes"}
    admin_client.post(reverse("restore_letters"), confirmed)
    assert states_of([discarded.pk, opened.pk]) == [LetterState.OPEN, LetterState.DISCARDED]


def test_a_plan_of_no_time_that_there_is_confirms_nothing(admin_client, queue) -> None:
    letter = make_letter(queue)
    asked = {"group": letter.group_id, "planned_at": "yesterday", "reason": "known", "confirm": "yes"}
    assert "Nothing was discarded" in text(admin_client.post(reverse("discard_letters"), asked))
    assert states_of([letter.pk]) == [LetterState.OPEN]


@pytest.mark.parametrize("sent", ["nonsense", "[]", '{"color": "red"}', '{"queue": 7}'])
def test_a_filter_that_no_page_sends_chooses_nothing(admin_client, queue, sent) -> None:
    make_letter(queue)
    page = confirm(admin_client, reverse("replay_letters"), {"filter": sent})
    assert "There is nothing to replay" in text(page)
    assert not Replay.objects.exists()


def test_a_message_is_mended_compared_and_replayed(admin_client, queue) -> None:
    letter = make_letter(queue, payload=b'{"temperature": 215, "unit": "F"}', headers={"ts": "AAAA"})
    url = reverse("edit_letter", args=[letter.pk])
    mended = typed(admin_client, letter, payload='{"temperature": 21.5, "unit": "F"}', reason="a comma")
    page = text(admin_client.post(url, {**mended, "plan": "yes"}))
    assert "removed: </span>  &quot;temperature&quot;: 215," in page
    assert "added: </span>  &quot;temperature&quot;: 21.5," in page
    assert not DeadLetterEdit.objects.exists()
    assert admin_client.post(url, compared(admin_client, letter, mended) | {"replay": "yes"}).status_code == 302
    edit = DeadLetterEdit.objects.get()
    assert json.loads(bytes(edit.payload)) == {"temperature": 21.5, "unit": "F"}
    assert edit.headers == {"ts": "AAAA"}
    assert edit.key == letter.key
    letter.refresh_from_db()
    assert letter.state == LetterState.REPLAYING
    assert [entry.reason for entry in LedgerEntry.objects.order_by("pk")] == ["a comma", ""]


def test_nothing_is_saved_before_it_was_looked_at(admin_client, queue) -> None:
    letter = make_letter(queue, payload=b'{"temperature": 215}')
    url = reverse("edit_letter", args=[letter.pk])
    page = Page(url, text(admin_client.get(url)))
    assert page.off() == ["Save", "Save and replay"]
    assert not page.unexplained()
    mended = typed(admin_client, letter, payload='{"temperature": 21.5}')
    for button in ({}, {"replay": "yes"}):
        shown = text(admin_client.post(url, {**mended, **button}))
        assert "Not saved: what was typed had not been compared" in shown
        assert "added: </span>  &quot;temperature&quot;: 21.5" in shown
    assert not Page(url, shown).off()
    assert not DeadLetterEdit.objects.exists()
    assert not Replay.objects.exists()


@pytest.mark.parametrize("later", [{"payload": '{"temperature": 9}'}, {"headers": "unit: F"}, {"key": "base64:AA=="}])
def test_what_is_typed_after_the_comparison_is_not_saved_unseen(admin_client, queue, later) -> None:
    letter = make_letter(queue, payload=b'{"temperature": 215}')
    url = reverse("edit_letter", args=[letter.pk])
    seen = compared(admin_client, letter, typed(admin_client, letter, payload='{"temperature": 21.5}'))
    answer = admin_client.post(url, {**seen, **later})
    assert "Not saved" in text(answer)
    assert {name: answer.context["form"][name].value() for name in later} == later
    assert not DeadLetterEdit.objects.exists()
    told = {**seen, **later, "reason": "typed last", "planned": answer.context["planned"]}
    assert admin_client.post(url, told).status_code == 302
    assert LedgerEntry.objects.get().reason == "typed last"


def test_what_a_comparison_does_not_show_is_told(admin_client, queue) -> None:
    letter = make_letter(queue, payload=b"a" + b"\n" * 1_200 + b"b", headers={})
    typed_now = typed(admin_client, letter, payload="c\n" * 1_500)
    page = text(admin_client.post(reverse("edit_letter", args=[letter.pk]), {**typed_now, "plan": "yes"}))
    assert "lines more, which are not shown" in page


@pytest.mark.parametrize("payload", [b'{"a":1,  "b": 1e400}', b"\xff\x00", b"two\r\nlines", b"text \xc3\xa4", b""])
def test_what_nobody_touched_is_sent_as_it_was_to_the_byte(admin_client, queue, payload) -> None:
    letter = make_letter(queue, payload=payload, headers={"id": "/wA=", "name": "YmFzZTY0Og==", "text": "aGk="})
    before = message_of(letter)
    untouched = compared(admin_client, letter, typed(admin_client, letter))
    admin_client.post(reverse("edit_letter", args=[letter.pk]), untouched)
    letter.refresh_from_db()
    assert letter.is_edited
    assert message_of(letter) == before


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("key", "sensor", "This is no UUID"),
        ("headers", "no colon", "is no header"),
        ("payload", "{", "This is not JSON"),
        ("key", "base64:%", "This is not base64"),
        ("headers", "__queue.replay.id: 7", "own"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_kept(admin_client, queue, field, value, told) -> None:
    letter = make_letter(queue)
    mended = compared(admin_client, letter, typed(admin_client, letter, **{field: value}, reason="typed before"))
    page = text(admin_client.post(reverse("edit_letter", args=[letter.pk]), mended))
    assert told in page
    assert "typed before" in page
    assert not DeadLetterEdit.objects.exists()


@pytest.mark.parametrize("button", ["plan", "save"])
def test_of_two_who_edit_the_second_is_shown_what_the_first_did_and_may_go_on(admin_client, queue, button) -> None:
    letter = make_letter(queue, payload=b'{"temperature": 215}')
    url = reverse("edit_letter", args=[letter.pk])
    mine = compared(admin_client, letter, typed(admin_client, letter, payload='{"mine": 1}'))
    edit_letter(Actor("bob"), letter.pk, QueueMessage(letter.key, b'{"temperature": 21.5}', {}), reason="a comma")
    answer = admin_client.post(url, {**mine, button: "yes"})
    assert answer.status_code == 409
    page = answer.content.decode()
    for told in ("bob has edited the letter since you opened it", "They did it because: a comma"):
        assert told in page
    theirs = page.partition('id="clashes"')[2].partition("</section>")[0]
    assert "added: </span>  &quot;temperature&quot;: 21.5" in theirs
    assert json.loads(answer.context["form"]["payload"].value()) == {"mine": 1}
    assert json.loads(bytes(DeadLetterEdit.objects.get().payload)) == {"temperature": 21.5}
    # Having seen it, they go on.
    seen = {"seen": answer.context["seen"], "planned": answer.context["planned"]}
    assert admin_client.post(url, {**mine, **seen}).status_code == 302
    assert json.loads(bytes(DeadLetterEdit.objects.get().payload)) == {"mine": 1}


def test_who_edits_what_another_has_taken_back_is_told(admin_client, queue) -> None:
    letter = make_letter(queue)
    edit = edit_letter(SYSTEM, letter.pk, QueueMessage(letter.key, b"theirs", {}))
    mine = compared(admin_client, letter, typed(admin_client, letter, form="text", payload="mine"))
    revert_letter(Actor("bob"), letter.pk, seen=edit.edited_at)
    answer = admin_client.post(reverse("edit_letter", args=[letter.pk]), mine)
    assert answer.status_code == 409
    assert "bob has gone back to the original since you opened it" in answer.content.decode()
    assert answer.context["seen"] == ""
    assert not DeadLetterEdit.objects.exists()


def test_an_edit_is_taken_back_after_a_look_at_what_is_dropped(admin_client, queue) -> None:
    letter = make_letter(queue, payload=b'{"temperature": 215}')
    edit_letter(Actor("bob"), letter.pk, QueueMessage(letter.key, b'{"temperature": 21.5}', {}))
    url = reverse("revert_letter", args=[letter.pk])
    assert url in text(admin_client.get(reverse("edit_letter", args=[letter.pk])))
    page = text(admin_client.get(url))
    assert "What bob has edited would be dropped" in page
    assert "removed: </span>  &quot;temperature&quot;: 21.5" in page
    assert DeadLetterEdit.objects.exists()
    assert admin_client.post(url, {**fields_of(page), "reason": "it was right"}).status_code == 302
    assert not DeadLetterEdit.objects.exists()
    assert LedgerEntry.objects.first().reason == "it was right"
    assert "Nobody has edited this letter" in text(admin_client.get(url))


def test_another_edit_than_the_one_that_was_shown_is_not_dropped(admin_client, queue) -> None:
    letter = make_letter(queue)
    first = edit_letter(SYSTEM, letter.pk, QueueMessage(letter.key, b"first", {}))
    url = reverse("revert_letter", args=[letter.pk])
    sent = fields_of(text(admin_client.get(url)))
    edit_letter(Actor("bob"), letter.pk, QueueMessage(letter.key, b"second", {}), seen=first.edited_at)
    assert "bob has edited the letter" in text(admin_client.post(url, sent, follow=True))
    assert bytes(DeadLetterEdit.objects.get().payload) == b"second"


def test_only_open_letters_are_edited(admin_client, queue) -> None:
    letter = make_letter(queue, state=LetterState.REPLAYED)
    assert "It cannot be edited here" in text(admin_client.get(reverse("edit_letter", args=[letter.pk])))


def test_a_letter_tells_what_each_attempt_ended_with(admin_client, queue) -> None:
    letter = make_letter(queue, attempts=2)
    page = reverse("dead_letter", args=[letter.pk])
    assert "What each attempt ended with" not in text(admin_client.get(page))
    ended = [
        {"number": 1, "failed_at_ms": 1_700_000_000_007, "outcome": "timed_out", "fault": "", "message": ""},
        {
            "number": 2,
            "failed_at_ms": 1_700_000_005_000,
            "outcome": "failed",
            "fault": "a.Full",
            "message": "<none> left",
        },
    ]
    DeadLetterBody.objects.filter(letter=letter).update(failures=ended)
    shown = " ".join(strip_tags(text(admin_client.get(page)).replace("<", " <")).split())
    assert "1. Timed out 2023-11-14 22:13:20.007 UTC" in shown
    assert "2. Failed: Full &lt;none&gt; left 2023-11-14 22:13:25.000 UTC" in shown


def test_the_ledger_tells_who_did_what_and_why(admin_client, queue) -> None:
    letter = make_letter(queue)
    discard_letters(SYSTEM, [letter.pk], "test data")
    note_group(SYSTEM, letter.group_id, "known")
    replay = start_replay(SYSTEM, [make_letter(queue).pk])

    def found(**asked: str) -> list[str]:
        return [entry.action for entry in admin_client.get(reverse("ledger"), asked).context["page"].object_list]

    assert found() == ["replay", "note", "discard"]
    assert found(action="note") == ["note"]
    assert found(q="test") == ["discard"]
    assert found(who="nobody") == []
    page = text(admin_client.get(reverse("ledger")))
    assert reverse("operation", args=[replay.operation_id]) in page
    assert "test data" in page


def test_a_replay_shows_what_became_of_its_letters(admin_client, queue) -> None:
    replay = start_replay(SYSTEM, [make_letter(queue).pk for _ in range(10)])
    Replay.objects.filter(pk=replay.pk).update(sent=6, succeeded=3, failed=2, skipped=1, ramp=[7])
    Operation.objects.filter(pk=replay.operation_id).update(done=7)
    page = text(admin_client.get(reverse("operation", args=[replay.operation_id])))
    parts = ["3</strong> handled", "2</strong> failed again", "1</strong> sent", "1</strong> left out"]
    for told in (*parts, "3</strong> not sent yet", "It waits for the outcome of the first 7"):
        assert told in page


def test_what_became_of_a_replays_letters_leads_to_them(admin_client, queue) -> None:
    letters = [make_letter(queue).pk for _ in range(6)]
    replay, other = start_replay(SYSTEM, letters[:5]), start_replay(SYSTEM, letters[5:])
    change_states(letters[:2], LetterState.REPLAYING, LetterState.FAILED_AGAIN)
    change_states([*letters[2:4], letters[5]], LetterState.REPLAYING, LetterState.REPLAYED)
    change_states(letters[4:5], LetterState.REPLAYING, LetterState.OPEN)
    Replay.objects.filter(pk=replay.pk).update(sent=4, succeeded=2, failed=2, skipped=1)
    page = text(admin_client.get(reverse("operation", args=[replay.operation_id])))
    for state, number in (("replayed", 2), ("failed_again", 2), ("open", 1)):
        asked = f"{reverse('dead_letters')}?replay={replay.pk}&state={state}"
        assert f'href="{asked.replace("&", "&amp;")}"><strong>{number}</strong>' in page
        listed = admin_client.get(asked)
        assert {row.replay_id for row in listed.context["page"].object_list} == {replay.pk}
        assert listed.context["page"].paginator.count == number
        assert reverse("operation", args=[replay.operation_id]) in text(listed)
        assert f'<a href="?state={state}">Show those of others too</a>' in text(listed)
    assert admin_client.get(reverse("dead_letters"), {"replay": other.pk}).context["letters"] == 1
    assert not admin_client.get(reverse("dead_letters"), {"replay": uuid4()}).context["letters"]


def test_what_one_replay_left_open_is_replayed_as_any_filter(admin_client, queue) -> None:
    letters = [make_letter(queue).pk for _ in range(3)]
    replay = start_replay(SYSTEM, letters[:2])
    change_states(letters[:2], LetterState.REPLAYING, LetterState.OPEN)
    page = admin_client.get(reverse("dead_letters"), {"replay": replay.pk, "state": "open"})
    chosen = page.context["all_matching"]["filter"]
    confirm(admin_client, reverse("replay_letters"), {"filter": chosen})
    assert set(DeadLetter.objects.filter(state=LetterState.REPLAYING).values_list("pk", flat=True)) == set(letters[:2])
