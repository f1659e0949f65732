"""The pages of alerts and of what belongs to them: rules, channels and silences."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.alert_deliveries import claim_deliveries, record_failure, record_sent
from queueapi.actions.alert_evaluation import evaluate_rules
from queueapi.actions.alert_rules import change_rule
from queueapi.actions.alerts import acknowledge_alert
from queueapi.actions.silences import create_silence, silence_alert
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import AlertState, Role
from queueapi.models import Alert, AlertChannel, AlertRule, AuditEntry, LagCurrent, Queue, Silence, Tenant
from queuecore.consuming.handler_options import HIDDEN
from tests.alerts import make_alert, make_channel, make_rule, make_silence
from tests.integration.web_receiver import Receiver, answer
from tests.page_forms import confirm, fields_of
from tests.people import person

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"
MOST_QUERIES = 13
SECRET = "a secret of some length"
LISTS = ("alerts", "alert_rules", "alert_channels", "silences")


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(person("ada", Role.ADMINISTRATOR))
    return client


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")


@pytest.fixture
def receiver(settings) -> Iterator[Receiver]:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, webhook_allow_private=True)
    with Receiver() as running:
        yield running


def own_queue(name: str = "Own", tenant: Tenant | None = None) -> Queue:
    owner = tenant or create_tenant(SYSTEM, f"Tenant of {name}")
    return Queue.objects.create(tenant=owner, name=name, topic=f"own_{name.lower()}", handler="log")


def words_of(response: HttpResponse) -> str:
    """What a person reads, on one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def seen(browser: Client, name: str, *args: Any, **query: Any) -> str:
    answered = browser.get(reverse(name, args=args), query)
    assert answered.status_code == 200
    return words_of(answered)


def rows_of(browser: Client, name: str, **query: Any) -> str:
    return browser.get(reverse(name), query).content.decode().partition("<tbody>")[2]


def send(browser: Client, name: str, /, *args: Any, **data: Any) -> str:
    return words_of(browser.post(reverse(name, args=args), data, follow=True))


# Alerts


def test_nothing_is_wrong(browser) -> None:
    evaluate_rules(timezone.now())
    shown = seen(browser, "alerts")
    assert "Nothing is wrong" in shown
    assert "11 rules watch; they were last looked at" in shown
    assert 'class="count" title="' not in browser.get(reverse("alerts")).content.decode()


def test_what_is_over_is_not_wrong_and_kept_in_its_tab(browser, queue) -> None:
    now = timezone.now()
    make_alert(queue, state=AlertState.RESOLVED, resolved_at=now, resolution="its value is low enough again")
    assert "Nothing is wrong" in seen(browser, "alerts")
    assert "150 messages wait in queue Main" in rows_of(browser, "alerts", state="resolved")
    assert "Resolved 1" in seen(browser, "alerts")


def test_an_alert_says_what_is_wrong_of_whose_since_when_and_who_sees_to_it(browser) -> None:
    alert = make_alert(own_queue(), severity="critical", since=timezone.now() - timedelta(minutes=12))
    acknowledge_alert(Actor("bob"), alert)
    shown = seen(browser, "alerts")
    for text in (
        "Acknowledged",
        "Critical",
        "150 messages wait in queue Own of Tenant of Own; more than 100 messages is too much",
        "Tenant of Own",
        "12 min ago",
        "bob",
        alert.rule_name,
    ):
        assert text in shown


def test_what_wants_somebody_most_comes_first(browser, queue) -> None:
    acknowledged = make_alert(queue, severity="critical", reason="first", subject_name="seen to")
    acknowledge_alert(Actor("bob"), acknowledged)
    for severity in ("info", "critical", "warning"):
        make_alert(queue, severity=severity, subject_name=f"of {severity}")
    make_alert(queue, state=AlertState.SILENCED, severity="critical", subject_name="quiet")
    rows = rows_of(browser, "alerts")
    order = ["of critical", "of warning", "of info", "seen to", "quiet"]
    places = [rows.index(f">{name}<") for name in order]
    assert places == sorted(places)


def test_alerts_are_narrowed_down(browser, queue) -> None:
    tenant = create_tenant(SYSTEM, "Acme")
    mine, theirs = make_alert(queue, subject_name="mine"), make_alert(own_queue("Own", tenant), subject_name="theirs")
    Alert.objects.filter(pk=theirs.pk).update(severity="critical")
    acknowledge_alert(SYSTEM, theirs)
    for asked in (
        {"q": "MINE"},
        {"q": mine.rule_name},
        {"severity": "warning"},
        {"queue": str(queue.pk)},
        {"rule": str(mine.rule_id)},
        {"state": "firing"},
    ):
        rows = rows_of(browser, "alerts", **asked)
        assert ">mine<" in rows, asked
        assert ">theirs<" not in rows, asked
    assert ">mine<" not in rows_of(browser, "alerts", tenant=str(tenant.pk))
    assert "No alerts match these filters" in seen(browser, "alerts", q="nothing")
    assert "Open 1 Firing 1 Acknowledged 0" in seen(browser, "alerts", severity="warning")


def test_alerts_are_paged_and_sorted_by_every_column(browser, queue) -> None:
    for number in range(30):
        make_alert(queue, subject_name=f"number {number:02}")
    assert "of 30 ← Previous Page 2 of 2" in seen(browser, "alerts", page="2")
    for column in ("state", "rule", "subject", "tenant", "since", "by"):
        for direction in ("", "-"):
            assert rows_of(browser, "alerts", sort=f"{direction}{column}").count("</tr>") == 25
    assert ">number 29<" in rows_of(browser, "alerts", sort="-subject")


def test_the_live_part_is_only_the_part(browser, queue) -> None:
    alert = make_alert(queue)
    for url in (reverse("alerts"), reverse("alert", args=[alert.pk]), reverse("alert_rules")):
        part = browser.get(url, headers={"HX-Request": "true"}).content.decode()
        assert "<html" not in part


def test_the_frame_counts_what_fires(browser, queue) -> None:
    make_alert(queue)
    acknowledge_alert(SYSTEM, make_alert(queue))
    shown = browser.get(reverse("audit")).content.decode()
    assert 'title="1 firing"' in shown


def test_the_overview_tells_the_worst_alerts_and_leads_to_each(browser, queue) -> None:
    since = timezone.now() - timedelta(minutes=5)
    for number in range(4):
        make_alert(queue, reason=f"warned of {number}")
    worst = make_alert(queue, severity="critical", reason="queue orders is 400 s behind", since=since)
    shown = seen(browser, "overview")
    assert "Queue orders is 400 s behind, for 5 min. See to it" in shown
    assert "2 more alerts fire. See all" in shown
    assert "5 firing 1 critical" in shown
    assert reverse("alert", args=[worst.pk]) in browser.get(reverse("overview")).content.decode()
    for _ in range(4):
        make_alert(queue, severity="critical")
    assert "6 more alerts fire, 2 of them critical." in seen(browser, "overview")


# One alert


def test_an_alerts_page_tells_its_story(browser, queue) -> None:
    channel, other = make_channel(name="On call"), make_channel(name="Chiefs")
    rule = make_rule(queue, channels=[channel, other], for_s=0)
    begun = timezone.now()
    LagCurrent.objects.create(
        queue=queue, partition=0, topic="main.0", consumer_group="c", end_offset=150, as_of=begun, lag_messages=150
    )
    evaluate_rules(begun)
    alert = Alert.objects.get(rule=rule)
    for claimed in claim_deliveries(timezone.now(), 10):
        if claimed.channel_id == channel.pk:
            record_sent(claimed, timezone.now())
        else:
            record_failure(claimed, "the chiefs' server answered 503", timezone.now(), may_help_to_retry=True)
    silence_alert(Actor("eve"), alert, until=timezone.now() + timedelta(hours=1), reason="an upgrade")
    acknowledge_alert(Actor("bob"), alert, "restarting it")
    shown = seen(browser, "alert", alert.pk)
    for text in (
        "150 messages wait in queue Main",
        "Fired",
        "On call was told that it fires",
        "Chiefs is to be told that it fires",
        "the chiefs&#x27; server answered 503",
        "Silenced by eve until",
        "an upgrade",
        "Acknowledged by bob",
        "restarting it",
        "bob sees to it, since",
    ):
        assert text in shown, text
    page = browser.get(reverse("alert", args=[alert.pk])).content.decode()
    assert f'id="explained" class="button primary" href="{reverse("queue", args=[queue.pk])}"' in page


def test_an_alert_that_tells_nobody_says_so(browser, queue) -> None:
    alert = make_alert(queue, told_at=None)
    assert "Nobody is told: its rule has no channel." in seen(browser, "alert", alert.pk)
    change_rule(SYSTEM, alert.rule, channels=[make_channel()])
    assert "its rule has no channel" not in seen(browser, "alert", alert.pk)


def test_an_alert_is_acknowledged_with_a_note(browser, queue) -> None:
    alert = make_alert(queue)
    shown = send(browser, "acknowledge_alert", alert.pk, note="on it")
    assert "Acknowledged: it does not escalate" in shown
    alert.refresh_from_db()
    assert (alert.state, alert.acknowledged_by, alert.note) == ("acknowledged", "ada", "on it")


def test_what_was_typed_stays_when_it_is_refused(browser, queue) -> None:
    alert = make_alert(queue)
    shown = browser.post(reverse("acknowledge_alert", args=[alert.pk]), {"note": "n" * 501}).content.decode()
    assert "at most 500 characters" in shown
    assert "n" * 501 in shown
    shown = browser.post(
        reverse("silence_alert", args=[alert.pk]), {"lasts": "4 hours", "reason": " "}
    ).content.decode()
    assert "This field is required" in shown
    assert '<option value="4 hours" selected>' in shown
    assert not Silence.objects.exists()


def test_somebody_was_quicker(browser, queue) -> None:
    alert = make_alert(queue)
    acknowledge_alert(Actor("bob"), alert)
    assert "bob sees to it already" in send(browser, "acknowledge_alert", alert.pk, note="")
    Alert.objects.filter(pk=alert.pk).update(state="resolved", resolved_at=timezone.now())
    assert "Not acknowledged: alert" in send(browser, "acknowledge_alert", alert.pk, note="")
    assert "Not silenced: alert" in send(browser, "silence_alert", alert.pk, lasts="1 hour", reason="x")


def test_an_alert_is_silenced_for_a_while(browser, queue) -> None:
    alert = make_alert(queue)
    assert "Silenced:" in send(browser, "silence_alert", alert.pk, lasts="4 hours", reason="an upgrade")
    silence = Silence.objects.get()
    assert (silence.rule, silence.subject_key, silence.reason) == (alert.rule, alert.subject_key, "an upgrade")
    assert timedelta(hours=3.9) < silence.until - timezone.now() <= timedelta(hours=4)


def test_an_alert_that_is_over_is_not_asked_for_again(browser, queue) -> None:
    alert = make_alert(queue, state=AlertState.RESOLVED, resolved_at=timezone.now(), resolution="it ended")
    shown = browser.get(reverse("alert", args=[alert.pk])).content.decode()
    assert "Resolved: it ended" in shown
    assert "hx-trigger" not in shown.partition("<main")[2].partition("</main>")[0]
    assert "Acknowledge</button>" not in shown
    part = browser.get(reverse("alert", args=[alert.pk]), headers={"HX-Request": "true"})
    assert part.status_code == 286


# Silences


def test_silences_are_listed_with_what_they_are_of(browser, queue) -> None:
    alert = make_alert(queue)
    silence_alert(Actor("eve"), alert, until=timezone.now() + timedelta(hours=1), reason="an upgrade")
    shown = seen(browser, "silences")
    assert f"{alert.rule_name} , of Main" in shown
    assert "Holds" in shown
    assert "eve" in shown


def test_silences_are_narrowed_down(browser, queue) -> None:
    make_silence(queue, reason="still on")
    Silence.objects.filter(pk=make_silence(queue, reason="long gone").pk).update(
        created_at=timezone.now() - timedelta(days=2), until=timezone.now() - timedelta(days=1)
    )
    assert "long gone" not in rows_of(browser, "silences", active="true")
    assert "still on" not in rows_of(browser, "silences", active="false")
    assert "still on" not in rows_of(browser, "silences", q="gone")


def test_a_silence_is_planned_and_created(browser, queue) -> None:
    make_alert(queue)
    data = {"queue": "main", "lasts": "1 hour", "reason": "an upgrade"}
    planned = send(browser, "create_silence", **data)
    assert "It would silence 1 alert that is open now" in planned
    assert not Silence.objects.exists()
    assert "Created: alerts that match" in words_of(confirm(browser, reverse("create_silence"), data))
    assert Silence.objects.get().queue == queue


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({}, "name a rule, a tenant, a queue or a subject"),
        ({"queue": "nowhere"}, "There is no queue &#x27;nowhere&#x27;"),
        ({"queue": "Twice"}, "Several tenants have a queue of that name"),
    ],
)
def test_a_silence_of_nothing_is_refused(browser, queue, typed, told) -> None:
    own_queue("Twice")
    Queue.objects.create(tenant=ensure_system_tenant(), name="twice", topic="twice", handler="log")
    shown = send(browser, "create_silence", lasts="1 hour", reason="typed", **typed)
    assert told in shown
    assert not Silence.objects.exists()


def test_a_silence_is_ended_after_a_look(browser, queue) -> None:
    make_alert(queue)
    silence = make_silence(queue)
    assert "1 alert that is open matches it" in seen(browser, "end_silence", silence.pk)
    assert "Ended:" in send(browser, "end_silence", silence.pk)
    assert not Silence.objects.exists()


# Rules


def test_rules_say_what_they_look_at_and_what_exceeds_them(browser, queue) -> None:
    rule = make_rule(queue, name="Reports", channels=[make_channel(name="On call")], for_s=300)
    make_alert(queue, rule, value=1234)
    shown = seen(browser, "alert_rules", q="reports")
    for text in (
        "Messages that wait",
        "100 messages",
        "for 5 min",
        "1 alert , worst 1,234 messages",
        "queue Main",
        "On call",
        "On",
        "Warning",
    ):
        assert text in shown, text
    assert "nothing exceeds it" in seen(browser, "alert_rules", q="Answers take long")


def test_a_rule_shows_what_it_measures_now(browser, queue) -> None:
    rule = make_rule(None, name="Everything", threshold=100)
    other = own_queue("Other")
    for number, (one, waiting) in enumerate(((queue, 150), (other, 20))):
        LagCurrent.objects.create(
            queue=one,
            partition=0,
            topic=f"t{number}",
            consumer_group="c",
            end_offset=waiting,
            as_of=timezone.now(),
            lag_messages=waiting,
        )
    shown = seen(browser, "alert_rule_measures", rule.pk)
    assert "1 of 2 above 100 messages" in shown
    assert shown.index("Main") < shown.index("Other")
    assert "150 messages" in shown
    make_rule(queue, name="Narrower", threshold=200)
    assert "None of 1 is above 100 messages" in seen(browser, "alert_rule_measures", rule.pk)


def test_a_rule_without_figures_says_so(browser, queue) -> None:
    assert "No figures are there yet" in seen(browser, "alert_rule_measures", make_rule(queue).pk)


def test_a_rule_is_planned_created_and_changed(browser, queue) -> None:
    channel = make_channel(name="On call")
    data = {
        "name": "Reports",
        "metric": "lag_seconds",
        "severity": "warning",
        "threshold": "3600",
        "for_s": "300",
        "resolve_for_s": "0",
        "queue": "Main",
        "enabled": "on",
        "channels": [str(channel.pk)],
    }
    planned = send(browser, "create_alert_rule", **data)
    assert "What would change" in planned
    assert "Fires above \N{EN DASH} 3,600 s " in planned
    assert not AlertRule.objects.filter(name="Reports").exists()
    assert "Created: rule Reports" in words_of(confirm(browser, reverse("create_alert_rule"), data))
    rule = AlertRule.objects.get(name="Reports")
    assert (rule.queue, rule.threshold, list(rule.channels.all())) == (queue, 3600, [channel])
    changed = {name: data[name] for name in ("name", "severity", "for_s", "resolve_for_s", "enabled")}
    address = reverse("change_alert_rule", args=[rule.pk])
    planned = send(browser, "change_alert_rule", rule.pk, **{**changed, "for_s": "90"}, threshold="60")
    assert "Fires above 3,600 s 60 s Fires when it lasts 5 min 90 s " in planned
    assert "Changed." in words_of(confirm(browser, address, {**changed, "threshold": "60"}))
    rule.refresh_from_db()
    assert (rule.threshold, list(rule.channels.all()), rule.queue) == (60, [], queue)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"name": ""}, "This field is required"),
        ({"resolve_at": "200"}, "use no more than threshold"),
        ({"metric": "response_lag", "queue": "Main"}, "a rule for a tenant or a queue is about one of"),
        ({"escalate_after_s": "60"}, "name who is told after escalate_after_s"),
        ({"queue": "nowhere"}, "There is no queue"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_and_stays_typed(browser, queue, typed, told) -> None:
    make_channel()
    data = {"name": "Reports", "metric": "lag_messages", "severity": "info", "threshold": "100", "for_s": "0"}
    page = browser.post(reverse("create_alert_rule"), {**data, "resolve_for_s": "0", "description": "typed", **typed})
    assert told in words_of(page)
    assert 'value="typed"' in page.content.decode()
    assert not AlertRule.objects.filter(description="typed").exists()


def test_a_rule_is_switched_off_and_on(browser, queue) -> None:
    rule = make_rule(queue)
    make_alert(queue, rule)
    asked = browser.get(reverse("switch_alert_rule", args=[rule.pk]))
    assert "Nobody is told of it any more, and its 1 open alert resolves within seconds." in words_of(asked)
    assert fields_of(asked.content.decode()) == {"enabled": "no"}
    assert "Off: its open alerts resolve" in send(browser, "switch_alert_rule", rule.pk, enabled="no")
    rule.refresh_from_db()
    assert not rule.enabled
    assert "It watches again" in seen(browser, "switch_alert_rule", rule.pk)
    send(browser, "switch_alert_rule", rule.pk, enabled="yes")
    rule.refresh_from_db()
    assert rule.enabled


def test_a_rule_is_deleted_after_its_plan(browser, queue) -> None:
    rule = make_rule(queue, name="Mine", threshold=107.0)
    planned = seen(browser, "delete_alert_rule", rule.pk)
    assert "It will be gone" in planned
    assert "Fires above 107 messages Resolves at 80 messages " in planned
    assert "Field Now Name Mine" in planned
    assert "Main" in planned
    assert "Deleted: rule Mine" in send(browser, "delete_alert_rule", rule.pk)
    default = AlertRule.objects.get(name="Answers take long")
    assert "comes with the system" in seen(browser, "delete_alert_rule", default.pk)
    assert "Not deleted: rule Answers take long comes with the system" in send(browser, "delete_alert_rule", default.pk)
    assert "switched off, not deleted" in seen(browser, "alert_rule", default.pk)


# Channels


def test_no_channels_yet(browser) -> None:
    assert "Nobody is told of alerts" in seen(browser, "alert_channels")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("email", {"recipients": "a@example.org\nb@example.org"}),
        ("slack", {"url": "https://hooks.example.org/T000/secret-path", "timeout_ms": "5000"}),
        ("webhook", {"url": "https://hooks.example.org/hook", "timeout_ms": "5000", "secret": SECRET}),
    ],
)
def test_a_channel_of_each_kind_is_planned_and_created(browser, kind, options) -> None:
    url = f"{reverse('create_alert_channel')}?kind={kind}"
    planned = words_of(browser.post(url, {"name": "On call", "enabled": "on", **options}))
    assert "What would change" in planned
    assert SECRET not in planned
    assert not AlertChannel.objects.exists()
    made = words_of(confirm(browser, url, {"name": "On call", "enabled": "on", **options}))
    assert "Created: channel On call" in made
    channel = AlertChannel.objects.get()
    assert channel.kind == kind
    assert channel.enabled


def test_secrets_are_shown_nowhere_and_stay_unless_others_are_entered(browser) -> None:
    options = {"url": "https://hooks.example.org/hidden-path", "secret": SECRET, "headers": {"X-Key": "hidden-header"}}
    channel = make_channel(name="Pager", kind="webhook", options=options)
    change = reverse("change_alert_channel", args=[channel.pk])
    for name in ("alert_channel", "change_alert_channel", "delete_alert_channel"):
        shown = browser.get(reverse(name, args=[channel.pk])).content.decode()
        for secret in (SECRET, "hidden-path", "hidden-header"):
            assert secret not in shown
    sent = {"name": "Pager 2", "url": f"https://hooks.example.org/{HIDDEN}", "timeout_ms": "7000", "enabled": "on"}
    assert "Changed." in words_of(confirm(browser, change, sent))
    channel.refresh_from_db()
    assert channel.options == {**options, "timeout_ms": 7000}
    confirm(browser, change, {**sent, "secret": "another secret, long enough", "forget_headers": "on"})
    channel.refresh_from_db()
    assert channel.options["secret"] == "another secret, long enough"
    assert "headers" not in channel.options


def test_a_channel_that_cannot_work_is_refused_and_stays_typed(browser) -> None:
    url = f"{reverse('create_alert_channel')}?kind=webhook"
    sent = {"name": "typed", "url": "ftp://nowhere", "timeout_ms": "10000", "headers": "no colon"}
    page = browser.post(url, sent)
    assert "has no colon" in words_of(page)
    page = browser.post(url, {**sent, "headers": "", "secret": "short"})
    assert "Not created: " in words_of(page)
    assert 'value="typed"' in page.content.decode()
    assert 'value="short"' not in page.content.decode()


def test_a_secret_is_typed_once_and_is_there_after_a_refusal_and_a_plan(browser) -> None:
    url = f"{reverse('create_alert_channel')}?kind=webhook"
    typed = {"name": "Pager", "url": "https://hooks.example.org/hook", "timeout_ms": "5000", "secret": SECRET}
    refused = browser.post(url, {**typed, "timeout_ms": "never"})
    assert SECRET not in refused.content.decode()
    again = {**typed, "secret": "", "typed_secret": refused.context["form"]["typed_secret"].value()}
    plan = browser.post(url, again)
    assert SECRET not in plan.content.decode()
    assert "It is entered, and not shown again" in words_of(plan)
    assert SECRET not in again["typed_secret"]
    browser.post(url, {**fields_of(plan.content.decode()), "confirm": "yes"})
    assert AlertChannel.objects.get().options["secret"] == SECRET
    assert SECRET not in str(dict(browser.session))


def test_a_typed_secret_that_is_not_known_any_more_is_asked_for_again(browser) -> None:
    url = f"{reverse('create_alert_channel')}?kind=webhook"
    typed = {"name": "Pager", "url": "https://hooks.example.org/hook", "timeout_ms": "5000"}
    refused = browser.post(url, {**typed, "typed_secret": "of a session that is over"})
    assert refused.context["form"].errors.keys() == {"secret"}
    assert "Enter it again" in words_of(refused)
    assert not AlertChannel.objects.exists()


def test_a_typed_secret_can_be_forgotten_or_replaced_before_it_is_stored(browser) -> None:
    url = f"{reverse('create_alert_channel')}?kind=webhook"
    typed = {"name": "Pager", "url": "https://hooks.example.org/hook", "timeout_ms": "5000"}
    plan = browser.post(url, {**typed, "secret": SECRET})
    again = {**typed, "typed_secret": plan.context["form"]["typed_secret"].value()}
    confirm(browser, url, {**again, "secret": "", "forget_secret": "on"})
    confirm(browser, url, {**again, "name": "Pager 2", "secret": "another secret, long enough"})
    options = dict(AlertChannel.objects.values_list("name", "options"))
    assert "secret" not in options["Pager"]
    assert options["Pager 2"]["secret"] == "another secret, long enough"


def test_a_test_says_what_came_of_it(browser, receiver) -> None:
    channel = make_channel(kind="webhook", options={"url": receiver.url(), "allow_private": True})
    assert "Delivered within" in send(browser, "test_alert_channel", channel.pk)
    assert len(receiver.requests) == 1
    receiver.next.append(answer(404, b"no such hook"))
    shown = send(browser, "test_alert_channel", channel.pk)
    assert "Not delivered" in shown
    assert "answered 404 Not Found: no such hook" in shown


def test_a_channel_is_deleted_after_its_plan(browser, queue) -> None:
    channel = make_channel(name="On call")
    make_rule(queue, name="Mine", channels=[channel])
    assert "These rules tell it nothing more: Mine" in seen(browser, "delete_alert_channel", channel.pk)
    assert "Deleted: channel On call" in send(browser, "delete_alert_channel", channel.pk)


# Who may


@pytest.fixture
def alerting(queue) -> dict[str, Any]:
    """One of each, by the name of its page's address."""
    alert, channel = make_alert(queue), make_channel()
    silence = make_silence(queue)
    return {"alert": alert.pk, "alert_rule": alert.rule_id, "alert_channel": channel.pk, "end_silence": silence.pk}


CHANGES = {
    "acknowledge_alert": "alert",
    "silence_alert": "alert",
    "end_silence": "end_silence",
    "test_alert_channel": "alert_channel",
    "change_alert_rule": "alert_rule",
    "switch_alert_rule": "alert_rule",
    "delete_alert_rule": "alert_rule",
    "change_alert_channel": "alert_channel",
    "delete_alert_channel": "alert_channel",
}
OF_OPERATORS = ("acknowledge_alert", "silence_alert", "end_silence", "test_alert_channel")


def refused(client: Client, alerting: dict[str, Any]) -> set[str]:
    return {
        name
        for name, of in CHANGES.items()
        if client.post(reverse(name, args=[alerting[of]]), {"enabled": "no"}).status_code == 403
    }


def test_operators_acknowledge_silence_and_test_and_read_the_rest(client, alerting) -> None:
    client.force_login(person("bob", Role.OPERATOR))
    for name in LISTS:
        assert client.get(reverse(name)).status_code == 200
    rule = seen(client, "alert_rule", alerting["alert_rule"])
    assert "You have the role operator, which may not change alert rules" in rule
    assert 'disabled title="You have the role operator' in client.get(reverse("alert_channels")).content.decode()
    assert refused(client, alerting) == CHANGES.keys() - set(OF_OPERATORS)


def test_auditors_look_and_change_nothing(client, alerting) -> None:
    client.force_login(person("eve", Role.AUDITOR))
    for name, pk in alerting.items():
        assert client.get(reverse(name, args=[pk])).status_code == 200
    shown = seen(client, "alert", alerting["alert"])
    assert "You have the role auditor, which may not operate alerts" in shown
    assert refused(client, alerting) == set(CHANGES)


@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.TENANT_VIEWER])
def test_of_rules_channels_and_silences_tenants_people_have_no_pages(client, alerting, role) -> None:
    """Alerts of their own are in `test_console_own_alerts`; those of what all share are not there for them."""
    client.force_login(person("gus", role, create_tenant(SYSTEM, "Acme")))
    for name in LISTS[1:]:
        assert client.get(reverse(name)).status_code == 403
    for name, pk in alerting.items():
        assert client.get(reverse(name, args=[pk])).status_code == (404 if name == "alert" else 403)
    unknown = {"acknowledge_alert"} if role == Role.TENANT_ADMIN else set()
    assert refused(client, alerting) == CHANGES.keys() - unknown


def test_strangers_are_sent_to_sign_in(client, alerting) -> None:
    for name in LISTS:
        assert client.get(reverse(name)).status_code == 302
    for name, of in CHANGES.items():
        assert client.post(reverse(name, args=[alerting[of]])).status_code == 302
    assert not AuditEntry.objects.exclude(actor_name=SYSTEM.name).exists()


@pytest.mark.parametrize("name", ["acknowledge_alert", "silence_alert", "test_alert_channel"])
def test_what_changes_something_is_never_a_link(browser, alerting, name) -> None:
    assert browser.get(reverse(name, args=[alerting[CHANGES[name]]])).status_code == 405


def test_what_people_typed_is_only_ever_text(browser, queue) -> None:
    channel = make_channel(name=HOSTILE)
    rule = make_rule(queue, name=HOSTILE, description=HOSTILE, channels=[channel])
    alert = make_alert(queue, rule, reason=HOSTILE, subject_name=HOSTILE)
    acknowledge_alert(Actor(HOSTILE), alert, HOSTILE)
    silence = create_silence(Actor(HOSTILE), rule=rule, until=timezone.now() + timedelta(hours=1), reason=HOSTILE)
    pages = [*((name, None) for name in LISTS), ("alert", alert.pk), ("alert_rule", rule.pk)]
    pages += [("alert_channel", channel.pk), ("end_silence", silence.pk), ("delete_alert_rule", rule.pk)]
    for name, pk in pages:
        assert HOSTILE not in browser.get(reverse(name, args=[pk] if pk else [])).content.decode(), name


# Speed


def fill(rows: int) -> None:
    for _ in range(rows):
        queue = own_queue(f"Queue{Queue.objects.count()}")
        channel = make_channel()
        rule = make_rule(queue, channels=[channel], escalate_after_s=60, escalation_channels=[channel])
        alert = make_alert(queue, rule)
        silence_alert(SYSTEM, alert, until=timezone.now() + timedelta(hours=1), reason="x")


@pytest.mark.parametrize("name", LISTS)
def test_lists_ask_the_database_as_often_for_many_rows_as_for_few(browser, django_assert_max_num_queries, name) -> None:
    asked = []
    for rows in (2, 20):
        fill(rows)
        with django_assert_max_num_queries(MOST_QUERIES) as queries:
            seen(browser, name, size="100")
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_details_ask_the_database_a_bounded_number_of_times(browser, django_assert_max_num_queries) -> None:
    fill(20)
    alert, channel = Alert.objects.first(), AlertChannel.objects.first()
    pages = {"alert": alert.pk, "alert_rule": alert.rule_id, "alert_rule_measures": alert.rule_id}
    pages |= {"alert_channel": channel.pk, "change_alert_rule": alert.rule_id, "change_alert_channel": channel.pk}
    for name, pk in pages.items():
        with django_assert_max_num_queries(MOST_QUERIES):
            seen(browser, name, pk)
    for name in ("create_alert_rule", "create_alert_channel", "create_silence"):
        with django_assert_max_num_queries(MOST_QUERIES):
            seen(browser, name)
