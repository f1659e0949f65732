"""Alerts from a figure to a message: evaluated, stored, told, acknowledged, silenced, and over."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.alert_channels import change_channel, delete_channel
from queueapi.actions.alert_deliveries import claim_deliveries
from queueapi.actions.alert_evaluation import evaluate_rules
from queueapi.actions.alert_rules import change_rule, create_rule, delete_rule, restore_default_rules
from queueapi.actions.alerts import acknowledge_alert, purge_alerts
from queueapi.actions.silences import create_silence, end_silence, silence_alert
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.alerting.defaults import DEFAULT_RULES
from queueapi.alerting.metrics import METRICS, SubjectKind
from queueapi.choices import AlertMetric, AlertState, Role
from queueapi.cluster.models import ServiceInstance
from queueapi.errors import AlreadyFinal, InvalidInput, NotChangeable
from queueapi.models import (
    Alert,
    AlertBreach,
    AlertDelivery,
    AlertEvaluation,
    AlertNotice,
    AlertRule,
    AuditEntry,
    DeadLetterGroup,
    DeadLetterTrend,
    LagCurrent,
    PipelineRun,
    ProcessingMinute,
    Queue,
    RequestCurrent,
    Silence,
)
from queueapi.models.alert_rule import default_rule_id
from queueapi.selectors.alerts import alert_counts
from tests.alerts import make_alert, make_channel, make_rule, make_silence
from tests.instances import announce
from tests.letters import make_letter, make_letters
from tests.people import api_of, person

NOW = datetime(2026, 3, 14, 9, 15, tzinfo=UTC)
ADA = Actor("ada")

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")


@pytest.fixture
def rule(queue: Queue) -> AlertRule:
    """Of messages that wait in this queue, at once; the others are about something else."""
    return make_rule(queue, channels=[make_channel(name="ops")])


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def evaluated(queue: Queue, messages: int, now: datetime = NOW) -> Alert | None:
    """The newest alert about what waits there, after an evaluation with that many."""
    told = {"topic": "main.0", "consumer_group": "c", "end_offset": messages, "as_of": now, "lag_messages": messages}
    LagCurrent.objects.update_or_create(queue=queue, partition=0, defaults=told)
    evaluate_rules(now)
    return Alert.objects.filter(metric="lag_messages").first()


def notices() -> list[tuple[str, str]]:
    return list(AlertNotice.objects.order_by("delivery__created_at").values_list("channel__name", "kind"))


def test_an_alert_says_what_is_wrong_since_when_and_where_to_look(queue, rule) -> None:
    alert = evaluated(queue, 150)
    assert (alert.state, alert.severity, alert.rule, alert.rule_name) == ("firing", "warning", rule, rule.name)
    assert alert.reason == "150 messages wait in queue Main; more than 100 messages is too much"
    assert (alert.since, alert.fired_at, alert.queue, alert.tenant) == (NOW, NOW, queue, None)
    assert alert.link == f"/queues/{queue.id}/"
    assert AlertEvaluation.objects.get().at == NOW
    assert notices() == [("ops", "fired")]


def test_an_alert_says_whose_queue_it_is(queue, rule) -> None:
    own = Queue.objects.create(tenant=create_tenant(SYSTEM, "Acme"), name="Main", topic="own", handler="log")
    make_rule(own)
    alert = evaluated(own, 150)
    assert alert.reason == "150 messages wait in queue Main of Acme; more than 100 messages is too much"
    assert alert.subject_name == "Main of Acme"


def test_what_is_well_again_is_not_called_too_much(queue, rule) -> None:
    change_rule(ADA, rule, resolve_for_s=60)
    evaluated(queue, 150)
    ending = evaluated(queue, 10, at(0.5))
    assert ending.state == "firing"
    told = "10 messages wait in queue Main by now; more than 100 messages was too much"
    assert ending.reason == f"{told}, and it ends once that lasts"
    over = evaluated(queue, 10, at(2))
    assert (over.state, over.reason) == ("resolved", told)


def test_where_nothing_may_wait_any_is_too_much(queue, rule) -> None:
    change_rule(ADA, rule, threshold=0, resolve_at=None)
    assert evaluated(queue, 1).reason == "1 message waits in queue Main; any is too much"


def test_it_is_brought_up_to_date_and_told_once(queue, rule) -> None:
    evaluated(queue, 150)
    alert = evaluated(queue, 170, at(1))
    assert (alert.value, alert.reason.split()[0], alert.fired_at) == (170, "170", NOW)
    change_rule(ADA, rule, threshold=120)
    assert evaluated(queue, 175, at(1.5)).reason.endswith("more than 120 messages is too much")
    over = evaluated(queue, 10, at(2))
    assert (over.state, over.resolved_at, over.resolution) == ("resolved", at(2), "its value is low enough again")
    evaluated(queue, 10, at(3))
    assert notices() == [("ops", "fired"), ("ops", "resolved")]
    again = evaluated(queue, 150, at(4))
    assert (again.pk != over.pk, Alert.objects.filter(rule=rule).count()) == (True, 2)


def test_what_fires_while_there_is_no_channel_is_told_once_there_is_one(queue) -> None:
    rule = make_rule(queue)
    assert evaluated(queue, 150).told_at is None
    change_rule(ADA, rule, channels=[make_channel(name="late")])
    assert evaluated(queue, 150, at(1)).told_at == at(1)
    assert notices() == [("late", "fired")]


def test_what_fires_while_a_channel_is_switched_off_waits_for_it(queue, rule) -> None:
    channel = change_channel(ADA, rule.channels.get(), enabled=False)
    evaluated(queue, 150)
    assert claim_deliveries(at(1), at_most=8) == []
    change_channel(ADA, channel, enabled=True)
    assert len(claim_deliveries(at(1), at_most=8)) == 1


def test_what_does_not_last_is_remembered_and_forgotten(queue) -> None:
    make_rule(queue, for_s=120)
    assert evaluated(queue, 150) is None
    assert AlertBreach.objects.get().since == NOW
    assert evaluated(queue, 50, at(1)) is None
    assert not AlertBreach.objects.exists()
    evaluated(queue, 150, at(2))
    assert evaluated(queue, 150, at(4)).since == at(2)
    assert not AlertBreach.objects.exists()


@pytest.mark.parametrize("seconds", [61, 3600])
def test_old_figures_are_said_to_be_old_and_change_nothing_else(queue, rule, seconds) -> None:
    """There is no time in which they tell nothing and nobody is told that."""
    evaluated(queue, 150)
    evaluate_rules(at(seconds / 60))
    states = dict(Alert.objects.values_list("metric", "state"))
    assert states == {"lag_messages": "firing", "pipeline_late": "firing"}


def test_one_that_began_earlier_and_had_to_wait_changes_nothing_back(queue, rule) -> None:
    evaluated(queue, 150, at(1))
    assert evaluated(queue, 0, NOW).state == "firing"
    assert AlertEvaluation.objects.get().at == at(1)
    assert evaluated(queue, 0, at(-60)).state == "resolved", "a clock that was an hour ahead is not waited for"


def test_a_queue_that_is_gone_takes_its_rules_with_it_and_its_alerts_are_over(queue, rule) -> None:
    evaluated(queue, 150)
    queue.delete()
    evaluate_rules(at(1))
    alert = Alert.objects.get(metric="lag_messages")
    assert (alert.state, alert.queue, alert.link) == ("resolved", None, "/")
    assert notices() == [("ops", "fired"), ("ops", "resolved")]


def test_many_alerts_are_few_messages(rule) -> None:
    AlertRule.objects.filter(pk=default_rule_id(AlertMetric.LAG_MESSAGES)).update(for_s=0)
    change_rule(SYSTEM, AlertRule.objects.get(pk=default_rule_id(AlertMetric.LAG_MESSAGES)), channels=[make_channel()])
    for number in range(150):
        made = Queue.objects.create(tenant=ensure_system_tenant(), name=f"q{number}", topic=f"q{number}", handler="log")
        told = {"topic": f"q{number}.0", "consumer_group": "c", "end_offset": 1, "as_of": NOW}
        LagCurrent.objects.create(queue=made, partition=0, lag_messages=20_000, **told)
    evaluate_rules(NOW)
    assert (Alert.objects.filter(metric="lag_messages").count(), AlertDelivery.objects.count()) == (150, 2)


class TestPeople:
    def test_who_acknowledges_is_known_and_nobody_else_is_called(self, queue) -> None:
        boss = make_channel(name="boss")
        make_rule(queue, channels=[make_channel(name="ops")], escalation_channels=[boss], escalate_after_s=600)
        alert = acknowledge_alert(ADA, evaluated(queue, 150), "looking")
        assert (alert.state, alert.acknowledged_by, alert.note) == ("acknowledged", "ada", "looking")
        evaluated(queue, 150, at(30))
        assert notices() == [("ops", "fired")]
        entry = AuditEntry.objects.get(action="acknowledge")
        assert (entry.before, entry.after) == ({"state": "firing"}, {"state": "acknowledged", "note": "looking"})
        evaluated(queue, 0, at(31))
        assert notices() == [("ops", "fired"), ("ops", "resolved")]

    def test_what_nobody_acknowledges_is_told_to_others_once_who_also_hear_that_it_is_over(self, queue) -> None:
        boss = make_channel(name="boss")
        make_rule(queue, channels=[make_channel(name="ops")], escalation_channels=[boss], escalate_after_s=600)
        for minutes in (0, 9, 10, 11):
            evaluated(queue, 150, at(minutes))
        assert notices() == [("ops", "fired"), ("boss", "escalated")]
        evaluated(queue, 0, at(12))
        assert sorted(notices()[2:]) == [("boss", "resolved"), ("ops", "resolved")]

    def test_a_second_acknowledgement_changes_nothing_and_one_of_what_is_over_is_refused(self, queue, rule) -> None:
        alert = evaluated(queue, 150)
        acknowledge_alert(ADA, alert)
        assert acknowledge_alert(Actor("eve"), alert).acknowledged_by == "ada"
        evaluated(queue, 0, at(1))
        with pytest.raises(AlreadyFinal, match="is over since 2026-03-14 09:16"):
            acknowledge_alert(ADA, alert)

    def test_a_silence_keeps_it_quiet_until_it_ends(self, queue, rule) -> None:
        silence = make_silence(queue, until=datetime.now(UTC) + timedelta(days=1))
        Silence.objects.update(created_at=NOW - timedelta(days=1), until=at(5))
        assert evaluated(queue, 150).state == "silenced"
        assert evaluated(queue, 150, at(4)).told_at is None
        assert notices() == []
        end_silence(ADA, silence)
        alert = evaluated(queue, 150, at(4.5))
        assert (alert.state, alert.told_at, notices()) == ("firing", at(4.5), [("ops", "fired")])

    def test_silencing_an_alert_is_of_its_rule_and_subject(self, queue, rule) -> None:
        alert = evaluated(queue, 150)
        silence = silence_alert(ADA, alert, until=datetime.now(UTC) + timedelta(hours=1), reason="known")
        assert (silence.rule, silence.subject_key, silence.created_by) == (rule, f"queue:{queue.id}", "ada")
        assert AuditEntry.objects.get(action="create", object_type="silence").after["reason"] == "known"
        with pytest.raises(AlreadyFinal):
            silence_alert(ADA, make_alert(queue, state="resolved", resolved_at=NOW), until=at(1), reason="x")

    @pytest.mark.parametrize(
        ("told", "remedy"),
        [
            ({"until": NOW}, "until: use a time within the next 30 days"),
            ({"until": datetime.now(UTC) + timedelta(days=31)}, "until: use a time within the next 30 days"),
            ({"reason": " "}, "reason: say why"),
            ({"queue": None}, "name a rule, a tenant, a queue or a subject"),
            ({"tenant": True}, "tenant: the system's queues are all tenants'; leave it out, or name a queue"),
        ],
    )
    def test_a_silence_that_makes_no_sense_is_refused(self, queue, told, remedy) -> None:
        given = {"queue": queue, "until": datetime.now(UTC) + timedelta(hours=1), "reason": "x", **told}
        if told.get("tenant"):
            given |= {"queue": None, "tenant": ensure_system_tenant()}
        with pytest.raises(InvalidInput, match=remedy):
            create_silence(ADA, **given)


class TestRules:
    def test_an_installation_begins_with_those_of_the_seeds(self) -> None:
        found = {row.metric: row for row in AlertRule.objects.all()}
        assert found.keys() == set(AlertMetric)
        seeds = {"pending_requests": 8000, "request_timeouts": 100, "response_lag": 5000}
        assert {metric: found[metric].threshold for metric in seeds} == seeds
        assert all(rule.is_default and rule.enabled for rule in found.values())

    def test_those_of_the_beginning_are_as_they_are_documented(self) -> None:
        fields = ("threshold", "resolve_at", "severity", "for_s", "resolve_for_s")
        found = {row.metric: tuple(getattr(row, field) for field in fields) for row in AlertRule.objects.all()}
        assert found == dict(_documented_rules())

    def test_one_that_comes_with_the_system_is_switched_off_and_stays_so(self) -> None:
        rule = AlertRule.objects.get(pk=default_rule_id(AlertMetric.ERROR_RATE))
        with pytest.raises(NotChangeable, match="set enabled to false"):
            delete_rule(ADA, rule)
        change_rule(ADA, rule, enabled=False, threshold=50)
        restore_default_rules()
        rule.refresh_from_db()
        assert (rule.enabled, rule.threshold, AlertRule.objects.count()) == (False, 50, len(DEFAULT_RULES))

    def test_changes_are_audited_with_their_channels(self, queue, rule) -> None:
        changed = change_rule(ADA, rule, threshold=200, channels=[make_channel(name="night")])
        assert changed.version == 2
        entries = AuditEntry.objects.filter(action="change", object_type="alert_rule").order_by("id")
        assert [(entry.before, entry.after) for entry in entries] == [
            ({"threshold": 100}, {"threshold": 200}),
            ({"channels": ["ops"]}, {"channels": ["night"]}),
        ]
        change_rule(ADA, changed, threshold=200)
        assert entries.count() == 2

    def test_a_change_leaves_nobody_to_escalate_to_without_a_time_nor_a_time_without_anybody(self, queue) -> None:
        boss = make_channel()
        rule = make_rule(queue, escalation_channels=[boss], escalate_after_s=600)
        for changes in ({"escalation_channels": []}, {"escalate_after_s": None}):
            with pytest.raises(InvalidInput, match="escalat"):
                change_rule(ADA, rule, **changes)
        delete_channel(ADA, boss)
        assert change_rule(ADA, rule, threshold=200).threshold == 200, (
            "what somebody else left does not stand in the way"
        )
        change_rule(ADA, rule, escalate_after_s=None)

    def test_one_that_is_deleted_leaves_what_it_did(self, queue, rule) -> None:
        evaluated(queue, 150)
        delete_rule(ADA, rule)
        alert = evaluated(queue, 150, at(1))
        assert (alert.state, alert.resolution, alert.rule_name) == ("resolved", "its rule was deleted", rule.name)

    @pytest.mark.parametrize(
        ("fields", "remedy"),
        [
            ({"threshold": -1}, "threshold"),
            ({"resolve_at": 101}, "resolve_at: use no more than threshold"),
            ({"metric": "colour"}, "metric"),
            ({"metric": "pipeline_late", "queue": True}, "a rule for a tenant or a queue is about one of lag_messages"),
            ({"request_topic": "js"}, "a rule for a request topic is about one of pending_requests"),
            ({"queue": True, "tenant": True}, "name one of tenant, queue and request_topic"),
            ({"tenant": True}, "tenant: the system's queues are all tenants'; leave it out, or name a queue"),
            ({"escalate_after_s": 0}, "escalate_after_s"),
            ({"escalate_after_s": 60}, "escalation_channels: name who is told after escalate_after_s"),
            ({"escalation_channels": True}, "escalate_after_s: say after how many seconds"),
            ({"name": "The FIGURES are old"}, "another rule is called so"),
            ({"colour": "red"}, "a rule has no field 'colour'"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, queue, fields, remedy) -> None:
        things = {"queue": queue, "tenant": queue.tenant, "escalation_channels": [make_channel()]}
        told = {name: things[name] if value is True else value for name, value in fields.items()}
        with pytest.raises(InvalidInput, match=remedy):
            create_rule(ADA, **{"name": "x", "metric": "lag_messages", "threshold": 100, **told})


class TestTheDatabase:
    """What must never be, whoever writes."""

    def test_one_open_alert_of_a_rule_and_a_subject(self, queue, rule) -> None:
        make_alert(queue, rule)
        with pytest.raises(IntegrityError), transaction.atomic():
            make_alert(queue, rule)
        make_alert(queue, rule, state="resolved", resolved_at=NOW)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"state": "asleep"},
            {"state": "resolved"},
            {"resolved_at": NOW},
            {"state": "acknowledged"},
            {"state": "acknowledged", "acknowledged_at": NOW},
            {"acknowledged_at": NOW, "acknowledged_by": "ada"},
        ],
    )
    def test_states_are_as_what_belongs_to_them(self, queue, rule, wrong) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            make_alert(queue, rule, **wrong)


def test_old_ones_are_removed_and_open_ones_never(queue, rule) -> None:
    for resolved_at in (at(-60), at(60)):
        make_alert(queue, rule, state=AlertState.RESOLVED, resolved_at=resolved_at, fired_at=at(-90))
    kept = make_alert(queue, rule, fired_at=at(-90))
    assert purge_alerts(NOW) == 1
    assert set(Alert.objects.values_list("state", flat=True)) == {"resolved", "firing"}
    assert Alert.objects.filter(pk=kept.pk).exists()


def _documented_rules() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What the table of rules says of each."""
    text = (Path(__file__).parents[2] / "docs/howto/alerts.md").read_text()
    for metric, above, *rest in re.findall(
        r"^\| `(\w+)` \| [^|]+ \|(.+)\|(.+)\|(.+)\|(.+)\|(.+)\|$", text, re.MULTILINE
    ):
        resolve_at, severity, for_s, resolve_for_s = (cell.strip() for cell in rest)
        yield metric, (_first_number(above), _first_number(resolve_at), severity, int(for_s), int(resolve_for_s))


def _first_number(cell: str) -> float:
    found = re.search(r"[\d,]+", cell)
    assert found
    return float(found[0].replace(",", ""))


def _lag(queue: Queue, **told: Any) -> None:
    given = {"topic": "main.0", "consumer_group": "g", "end_offset": 20_000, "as_of": timezone.now()}
    figures = {**given, "lag_messages": 12_345, **told}
    LagCurrent.objects.update_or_create(queue=queue, partition=0, defaults=figures)


def _failures(queue: Queue) -> None:
    minute = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=2)
    ProcessingMinute.objects.create(queue=queue, at=minute, handled=100, failed=37, timed_out=5)


def _new_letters(queue: Queue, letters: float = 137, now: datetime | None = None) -> None:
    hour = (now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    fingerprint = make_letter(queue).fingerprint
    DeadLetterTrend.objects.update_or_create(
        queue=queue, fingerprint=fingerprint, at=hour, defaults={"letters": letters}
    )


def _requests(**told: Any) -> None:
    figures = {"as_of": timezone.now(), **told}
    RequestCurrent.objects.update_or_create(service_id="a", request_topic="js.requests", defaults=figures)


def _lost_service(now: datetime | None = None) -> None:
    service = announce("host-9")
    ServiceInstance.objects.filter(pk=service.pk).update(is_lost=True, gone_at=now or timezone.now())


def _old_figures() -> None:
    _ran(timezone.now() - timedelta(minutes=7))


def _ran(at: datetime) -> None:
    run = {"events": 1, "newest_event_at": at, "started_at": at, "finished_at": at}
    PipelineRun.objects.update_or_create(query="q", batch_id=1, defaults=run)


# What makes an alert of each metric, and how that is told on the page which its link leads to.
SHOWN: Final[Mapping[AlertMetric, tuple[Callable[[Queue], Any], str]]] = {
    AlertMetric.LAG_MESSAGES: (_lag, "12,345 messages"),
    AlertMetric.LAG_SECONDS: (lambda queue: _lag(queue, lag_seconds=754), "12 min 34 s"),
    AlertMetric.STALLED_PARTITIONS: (lambda queue: _lag(queue, status="stall", reason="STALL: stuck"), "STALL Stuck"),
    AlertMetric.ERROR_RATE: (_failures, "Failed: at most 37/min"),
    AlertMetric.NEW_LETTERS: (_new_letters, "at most 137 in an hour"),
    AlertMetric.OPEN_LETTERS: (lambda queue: make_letters(queue, 3), "OutOfRange 3"),
    AlertMetric.PENDING_REQUESTS: (lambda _: _requests(pending=9_000), "9,000 requests"),
    AlertMetric.REQUEST_TIMEOUTS: (lambda _: _requests(timed_out=150), "150 a minute"),
    AlertMetric.RESPONSE_LAG: (lambda _: _requests(lag_p99_ms=6_200.0), "6.2 s"),
    AlertMetric.LEASE_LOSSES: (lambda _: _lost_service(), "host-9 Lost"),
    AlertMetric.PIPELINE_LATE: (lambda _: _old_figures(), "Figures are 7 min old"),
}


def _attempts(queue: Queue, failed: float, now: datetime) -> None:
    """A hundred, of which so many fail."""
    minute = {"at": now.replace(second=0), "handled": 100 - failed, "failed": failed}
    ProcessingMinute.objects.update_or_create(queue=queue, defaults=minute)


def _open_letters(queue: Queue, letters: float) -> None:
    make_letter(queue)
    DeadLetterGroup.objects.filter(queue=queue).update(letters=letters, open_letters=letters)


# What makes a metric be so much at a time.
MADE: Final[Mapping[AlertMetric, Callable[[Queue, float, datetime], Any]]] = {
    AlertMetric.LAG_MESSAGES: lambda queue, much, now: _lag(queue, lag_messages=much, as_of=now),
    AlertMetric.LAG_SECONDS: lambda queue, much, now: _lag(queue, lag_seconds=much, as_of=now),
    AlertMetric.STALLED_PARTITIONS: lambda queue, much, now: _lag(queue, status="stall" if much else "ok", as_of=now),
    AlertMetric.ERROR_RATE: _attempts,
    AlertMetric.NEW_LETTERS: _new_letters,
    AlertMetric.OPEN_LETTERS: lambda queue, much, _: _open_letters(queue, much),
    AlertMetric.PENDING_REQUESTS: lambda _, much, now: _requests(pending=much, as_of=now),
    AlertMetric.REQUEST_TIMEOUTS: lambda _, much, now: _requests(timed_out=much, as_of=now),
    AlertMetric.RESPONSE_LAG: lambda _, much, now: _requests(lag_p99_ms=much, as_of=now),
    AlertMetric.LEASE_LOSSES: lambda _, much, now: much and _lost_service(now),
    AlertMetric.PIPELINE_LATE: lambda _, much, now: _ran(now - timedelta(seconds=much)),
}


@pytest.mark.parametrize("metric", list(AlertMetric))
def test_a_rule_of_the_beginning_fires_above_its_threshold_once_that_lasts(queue, metric) -> None:
    rule = AlertRule.objects.get(pk=default_rule_id(metric))

    def fires(much: float, now: datetime) -> bool:
        _ran(now)
        MADE[metric](queue, much, now)
        evaluate_rules(now)
        return Alert.objects.filter(rule=rule).exists()

    lasting = timedelta(seconds=rule.for_s)
    assert not any(fires(rule.threshold, now) for now in (NOW, NOW + lasting))
    if rule.for_s:
        assert not fires(rule.threshold + 1, at(2))
        assert not fires(rule.threshold + 1, at(2) + lasting - timedelta(seconds=1))
    assert fires(rule.threshold + 1, at(2) + lasting)


@pytest.mark.parametrize("metric", list(AlertMetric))
def test_every_alert_links_to_a_page_that_shows_its_figure(client: Client, queue, metric) -> None:
    client.force_login(person("root", Role.ADMINISTRATOR))
    make, told = SHOWN[metric]
    make(queue)
    is_of_queue = METRICS[metric].kind == SubjectKind.QUEUE
    alert = Alert(metric=metric, subject_name="js.requests", queue=queue if is_of_queue else None)
    assert told in _read_with_its_parts(client, alert.link)


def _read_with_its_parts(client: Client, link: str) -> str:
    """What is read on a page, and told by its drawings; with what is loaded into it."""
    page = _page(client, link)
    parts = (_page(client, unescape(part)) for part in re.findall(r'hx-get="([^"]+)" hx-trigger="load[^"]*"', page))
    whole = " ".join((page, *parts))
    told = " ".join(re.findall(r'aria-label="([^"]+)"', whole))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", whole) + told)


def _page(client: Client, link: str) -> str:
    answer = client.get(link)
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_alert_of_requests_links_to_what_is_known_of_them(client: Client) -> None:
    client.force_login(person("root", Role.ADMINISTRATOR))
    for topic in ("js.requests", "other & more"):
        RequestCurrent.objects.create(service_id="a", request_topic=topic, pending=9000, as_of=NOW)
    link = Alert(metric=AlertMetric.PENDING_REQUESTS, subject_name="other & more").link
    page = client.get(link).content.decode()
    assert "other &amp; more" in page
    assert "js.requests" not in page


class TestTenants:
    """What is a tenant's own, and nothing else."""

    def test_a_tenants_people_see_alerts_of_its_own_queues(self, queue, rule) -> None:
        tenant, other = create_tenant(SYSTEM, "Greenhouse"), create_tenant(SYSTEM, "Foundry")
        own, foreign = (
            Queue.objects.create(tenant=each, name="Own", topic="own", handler="log") for each in (tenant, other)
        )
        alerts = [make_alert(each) for each in (own, foreign)]
        make_alert(queue, rule)
        api = api_of(person("eve", Role.TENANT_ADMIN, tenant))
        seen = api.get("/api/v1/alerts").json()["results"]
        assert [(row["id"], row["link"]) for row in seen] == [(str(alerts[0].id), f"/queues/{own.id}/")]
        assert api.get("/api/v1/alerts/counts").json()["states"]["firing"] == 1
        assert [row["name"] for row in api.get("/api/v1/alert-rules").json()["results"]] == [alerts[0].rule_name]
        assert api.get(f"/api/v1/alerts/{alerts[1].id}").status_code == 404
        answer = api.post(f"/api/v1/alerts/{alerts[0].id}/acknowledge", {"note": "mine"})
        assert (answer.json()["state"], answer.json()["acknowledged_by"]) == ("acknowledged", "eve")
        assert AuditEntry.objects.get(action="acknowledge").tenant_id == tenant.id

    def test_who_is_told_and_what_is_silenced_is_for_those_who_run_the_system(self, queue) -> None:
        tenant, channel = create_tenant(SYSTEM, "Greenhouse"), make_channel(name="pager of bob")
        own = Queue.objects.create(tenant=tenant, name="Own", topic="own", handler="log")
        rule = make_rule(own, channels=[channel])
        change_rule(ADA, rule, threshold=200, channels=[])
        change_rule(ADA, rule, channels=[channel])
        end_silence(ADA, make_silence(own, reason="bob is asleep"))
        make_silence(None, tenant=tenant, reason="bob is asleep")
        eve, root = api_of(person("eve", Role.TENANT_ADMIN, tenant)), api_of(person("root", Role.OPERATOR))
        for api, seen in ((eve, []), (root, [str(channel.id)])):
            assert api.get(f"/api/v1/alert-rules/{rule.id}").json()["channels"] == seen
            assert api.get("/api/v1/alert-rules?metric=lag_messages").json()["results"][-1]["channels"] == seen
        kept = eve.get("/api/v1/audit").content.decode()
        assert "alert_rule" in kept
        assert "bob" not in kept
        delete_rule(ADA, rule)
        assert "bob" not in eve.get("/api/v1/audit").content.decode()


def test_lists_are_narrowed(queue, rule) -> None:
    make_alert(queue, rule)
    make_alert(queue, rule, state="resolved", resolved_at=NOW, severity="critical")
    api = api_of(person("root", Role.OPERATOR))
    asked = {
        "state=firing": 1,
        "is_open=false": 1,
        "severity=critical": 1,
        "metric=lag_seconds": 0,
        f"queue={queue.id}": 2,
    }
    found = {query: len(api.get(f"/api/v1/alerts?{query}").json()["results"]) for query in asked}
    assert found == asked
    make_silence(queue)
    assert [len(api.get(f"/api/v1/silences?active={one}").json()["results"]) for one in ("true", "false")] == [1, 0]


class TestTheCommand:
    def test_it_lists_what_is_not_over(self, queue, rule) -> None:
        assert said("list") == "nothing is wrong\n"
        make_alert(queue, rule)
        make_alert(queue, rule, state="resolved", resolved_at=NOW)
        head, line = said("list").splitlines()
        assert head.split() == ["STATE", "SEVERITY", "SINCE", "RULE", "REASON"]
        assert "150 messages wait in queue Main" in line
        assert json.loads(said("list", "--json"))["link"] == f"/queues/{queue.id}/"

    def test_it_tries_a_channel_and_says_what_came_of_it(self, rule) -> None:
        with pytest.raises(CommandError, match="there is no channel 'pager'; there are: ops"):
            said("test", "pager")
        with pytest.raises(CommandError, match="SWITCHYARD_EMAIL_HOST"):
            said("test", "OPS")


def said(*arguments: str) -> str:
    output = StringIO()
    call_command("alerts", *arguments, stdout=output)
    return output.getvalue()


def test_on_either_database_an_alert_goes_its_way(database) -> None:
    """Locks, constraints and counts are the database's own."""
    queue = Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")
    restore_default_rules()
    rule = make_rule(queue, for_s=60, channels=[make_channel()])
    evaluated(queue, 150)
    acknowledge_alert(ADA, evaluated(queue, 150, at(1)))
    with pytest.raises(IntegrityError), transaction.atomic():
        make_alert(queue, rule)
    assert alert_counts(Alert.objects.all()).states["acknowledged"] == 1
    assert len(claim_deliveries(at(1), at_most=8)) == 1
    assert evaluated(queue, 0, at(2)).state == "resolved"
    assert notices() == [(rule.channels.get().name, "fired"), (rule.channels.get().name, "resolved")]
