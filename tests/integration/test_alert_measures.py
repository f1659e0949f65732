"""What a rule measures: the highest values of what it holds for, and how many exceed it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.alerting.matching import RuleBook
from queueapi.alerting.metrics import SubjectKind
from queueapi.alerting.values import Subject
from queueapi.models import AlertRule, LagCurrent, Queue, RequestCurrent
from queueapi.selectors.alert_measures import MEASURES_SHOWN, _queues_of, _rivals, measures_of
from queuecore.topics import SYSTEM_TENANT

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_rules_of_the_system(database) -> None:
    AlertRule.objects.all().delete()


def rule(name: str, metric: str = "lag_messages", **scope: object) -> AlertRule:
    return AlertRule.objects.create(name=name, metric=metric, threshold=100, resolve_at=80, **scope)


def queue(name: str, tenant=None, **lags: int) -> Queue:
    """With partitions that lag so, of which the names begin with whether they are sampled."""
    tenant = tenant or ensure_system_tenant()
    made = Queue.objects.create(tenant=tenant, name=name, topic=name.lower(), handler="log")
    now = timezone.now()
    for number, (key, lag) in enumerate(lags.items()):
        as_of = now - timedelta(hours=1) if key.startswith("old") else now
        LagCurrent.objects.create(
            queue=made, partition=number, topic=f"{name}.{number}", consumer_group="c", end_offset=9,
            lag_messages=lag, as_of=as_of,
        )  # fmt: skip
    return made


def test_the_highest_come_first_and_those_that_nobody_knows_last() -> None:
    queue("Low", a=3)
    queue("High", a=90, b=60)
    queue("Partly", a=120, old=7)
    queue("Unknown", old=500)
    queue("Silent")
    seen = measures_of(rule("all"), timezone.now())
    assert [(one.name, one.value, one.is_known, one.is_at_least) for one in seen.worst] == [
        ("High", 150, True, False),
        ("Partly", 120, True, True),
        ("Low", 3, True, False),
        ("Unknown", 0, False, True),
    ]
    assert seen.worst[1].detail == "1 of its partitions are not sampled"
    assert (seen.subjects, seen.exceeding) == (4, 2)
    assert seen.as_of == LagCurrent.objects.latest("as_of").as_of


def test_a_tenants_queue_is_told_from_the_shared_one_of_its_name() -> None:
    queue("Main", a=3)
    queue("Main", create_tenant(SYSTEM, name="Acme"), a=90)
    assert [one.name for one in measures_of(rule("all"), timezone.now()).worst] == ["Main of Acme", "Main"]


def test_of_many_the_highest_are_shown_and_all_are_counted() -> None:
    for number in range(MEASURES_SHOWN + 5):
        queue(f"Queue{number:02}", a=200)
    seen = measures_of(rule("all"), timezone.now())
    assert [one.name for one in seen.worst] == [f"Queue{number:02}" for number in range(MEASURES_SHOWN)]
    assert (seen.subjects, seen.exceeding) == (MEASURES_SHOWN + 5, MEASURES_SHOWN + 5)


def test_where_nothing_of_it_came_a_queue_has_none_of_it() -> None:
    queue("Orders")
    seen = measures_of(rule("letters", "open_letters"), timezone.now())
    assert [(one.name, one.value, one.is_known) for one in seen.worst] == [("Orders", 0, True)]


def test_narrower_rules_take_what_is_theirs_as_they_do_when_alerts_are_evaluated() -> None:
    acme, other = create_tenant(SYSTEM, name="Acme"), create_tenant(SYSTEM, name="Other")
    shared, own, second, theirs = queue("Shared"), queue("Own", acme), queue("Second", acme), queue("Theirs", other)
    rules = [
        rule("all"),
        rule("all too"),
        rule("acme", tenant=acme),
        rule("one", queue=second),
        rule("one more", queue=second, enabled=False),
        rule("system's", tenant=ensure_system_tenant()),
        rule("another metric", "lag_seconds", queue=theirs),
    ]
    chosen = {each.name: set(_queues_of(each)) for each in rules}
    assert chosen["all"] == chosen["all too"] == {shared, theirs}
    assert (chosen["acme"], chosen["one"], chosen["one more"]) == ({own}, {second}, {second})
    for each in rules:
        book, held = RuleBook(_rivals(each)), set()
        for one in (shared, own, second, theirs):
            whose = None if one.tenant_id == SYSTEM_TENANT else one.tenant_id
            subject = Subject(SubjectKind.QUEUE, one.name, str(one.pk), whose)
            if any(found.id == each.id for found in book.holding(each.metric_choice, subject)):
                held.add(one)
        assert chosen[each.name] == held, each.name


def test_requests_have_rules_of_their_own_too() -> None:
    for topic, pending in (("prices", 7), ("stocks", 900)):
        RequestCurrent.objects.create(
            service_id="s", request_topic=topic, pending=pending, pending_limit=1000, as_of=timezone.now()
        )
    wide, narrow = rule("all", "pending_requests"), rule("stocks", "pending_requests", request_topic="stocks")
    assert [(one.name, one.value) for one in measures_of(wide, timezone.now()).worst] == [("prices", 7)]
    seen = measures_of(narrow, timezone.now())
    assert [(one.name, one.value) for one in seen.worst] == [("stocks", 900)]
    assert seen.exceeding == 1


def test_without_any_figures_nothing_is_known() -> None:
    seen = measures_of(rule("all"), timezone.now())
    assert (seen.as_of, seen.worst, seen.subjects, seen.exceeding) == (None, [], 0, 0)
