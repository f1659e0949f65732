"""The browser console, page by page: who may see it, what it shows, and what its buttons do."""

import base64
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from console.payloads import MAX_HEX_BYTES, MAX_TEXT_BYTES, show_headers, show_payload
from queueapi.actions.actor import SYSTEM
from queueapi.actions.letter_edits import edit_letter
from queueapi.actions.pipeline import record_pipeline_failure
from queueapi.actions.queues import create_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.choices import LagStatus, LedgerAction, LetterState, OperationState, ProcessState, Role
from queueapi.models import (
    AuditEntry,
    DeadLetter,
    LagCurrent,
    LedgerEntry,
    ManagedProcess,
    Operation,
    OperationLogEntry,
    PipelineRun,
    PipelineStanding,
    QuarantinedLetter,
    Queue,
    Replay,
    Tenant,
)
from queueapi.runtime import close_provider
from queueapi.selectors.overview import HOSTS_SHOWN
from queuecore.messages import QueueMessage
from tests import letters
from tests.instances import announce
from tests.page_forms import confirm
from tests.people import person
from workers.spark.errors import SparkUnavailable
from workers.spark.session import JAVA_REMEDY

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script>"
PAGES = (
    *("overview", "queues", "tenants", "tenant_profiles", "dead_letters", "pending_requests", "operations", "audit"),
    *("alerts", "alert_rules", "alert_channels", "silences", "tokens", "users"),
)
QUEUE_PAGES = ("queue", "queue_charts", "queue_consumers", "queue_messages", "queue_groups", "queue_configuration")
MOST_QUERIES = 15

_numbers = count()


def ago(**length: float) -> datetime:
    return timezone.now() - timedelta(**length)


def make_queue(name: str = "Main", tenant: Tenant | None = None, **fields: Any) -> Queue:
    tenant = tenant or ensure_system_tenant()
    return Queue.objects.create(
        tenant=tenant, name=name, **{"topic": f"topic_{next(_numbers)}", "handler": "noop", **fields}
    )


def make_letter(queue: Queue, **fields: Any) -> DeadLetter:
    return letters.make_letter(
        queue, **{"sent_at": ago(minutes=6), "first_failed_at": ago(minutes=6), "failed_at": ago(minutes=5), **fields}
    )


def make_lag(queue: Queue, lag: int, *, partition: int = 0, age_s: float = 3, **fields: Any) -> LagCurrent:
    told = {"topic": f"{queue.topic}.{partition}", "consumer_group": "group", "end_offset": 10_000}
    rates = {"produced_per_s": 10.0, "consumed_per_s": 10.0}
    return LagCurrent.objects.create(
        queue=queue, partition=partition, lag_messages=lag, as_of=ago(seconds=age_s), **{**told, **rates, **fields}
    )


def make_run(age_s: float = 6, *, finished_age_s: float | None = None) -> PipelineRun:
    finished = ago(seconds=age_s if finished_age_s is None else finished_age_s)
    return PipelineRun.objects.create(
        query="lag",
        batch_id=next(_numbers),
        events=5,
        newest_event_at=ago(seconds=age_s),
        started_at=finished,
        finished_at=finished,
    )


def make_process(name: str, state: ProcessState = ProcessState.RUNNING, **fields: Any) -> ManagedProcess:
    return ManagedProcess.objects.create(name=name, state=state, changed_at=ago(minutes=1), **fields)


def make_operation(state: OperationState = OperationState.RUNNING, **fields: Any) -> Operation:
    finished = {"finished_at": ago(minutes=1)} if state.is_final else {}
    told = {"kind": "replay_letters", "summary": "Replay of 4 dead letters", "total": 4, **finished}
    return Operation.objects.create(state=state, **{**told, **fields})


def make_replay(operation: Operation) -> Replay:
    return Replay.objects.create(operation=operation)


def text_of(response: HttpResponse) -> str:
    """What a person reads, on one line."""
    without_tags = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", without_tags)


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def visitor(client: Client) -> Client:
    """Signed in, but without a role."""
    client.force_login(User.objects.create_user("visitor"))
    return client


# Who may see what


def pages_with_data() -> list[str]:
    queue = make_queue()
    letter, operation = make_letter(queue), make_operation()
    return [
        *(reverse(name) for name in PAGES),
        *(reverse(name, args=[queue.pk]) for name in QUEUE_PAGES),
        reverse("dead_letter", args=[letter.pk]),
        reverse("letter_payload", args=[letter.pk]),
        reverse("operation", args=[operation.pk]),
    ]


def test_administrators_see_every_page(admin_client: Client) -> None:
    for url in pages_with_data():
        assert admin_client.get(url).status_code == 200, url


def test_strangers_are_sent_to_sign_in(client: Client) -> None:
    for url in pages_with_data():
        assert client.get(url).headers["Location"] == f"/login/?next={url}"


def test_people_without_a_role_are_told_so(visitor: Client) -> None:
    for url in pages_with_data():
        response = visitor.get(url)
        assert response.status_code == 403
        assert "This account has no role yet" in text_of(response)


def test_strangers_change_nothing(client: Client) -> None:
    letter, operation = make_letter(make_queue()), make_operation()

    client.post(reverse("replay_letters"), {"letter": [str(letter.pk)], "confirm": "yes"})
    client.post(reverse("cancel_operation", args=[operation.pk]))

    letter.refresh_from_db()
    operation.refresh_from_db()
    assert (letter.state, operation.state) == (LetterState.OPEN, OperationState.RUNNING)


def test_a_live_part_whose_session_is_over_takes_the_page_to_sign_in(client: Client) -> None:
    response = client.get(
        reverse("overview"), headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/queues/"}
    )
    assert response.headers["HX-Redirect"] == "/login/?next=/queues/"


@pytest.mark.parametrize(
    ("came_from", "leads_to"),
    [
        ("http://testserver/queues/create/?tenant=acme", "/queues/create/%3Ftenant%3Dacme"),
        ("http://elsewhere.example.org/queues/", "/"),
        ("", "/"),
    ],
)
def test_who_sends_a_form_after_the_session_comes_back_to_it(client, came_from, leads_to) -> None:
    response = client.post(reverse("create_queue"), {"name": "typed"}, headers={"Referer": came_from})
    assert response.headers["Location"] == f"/login/?next={leads_to}"


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/dead-letters/replay/", "/dead-letters/"),
        ("/queues/pause/", "/queues/"),
        ("/alerts/00000000-0000-0000-0000-000000000001/acknowledge/", "/alerts/00000000-0000-0000-0000-000000000001/"),
        (
            "/queues/00000000-0000-0000-0000-000000000001/pauses/3/resume/",
            "/queues/00000000-0000-0000-0000-000000000001/",
        ),
    ],
)
def test_who_opens_what_only_takes_forms_gets_the_page_above(admin_client, path, leads_to) -> None:
    """Where a plan or a refused form was shown: after signing in, from a restored tab, or by a copied link."""
    opened = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = admin_client.get(path, headers=opened)
    assert (answer.status_code, answer.headers["Location"]) == (302, leads_to)
    assert admin_client.get(path, headers={**opened, "HX-Request": "true"}).status_code == 405
    assert admin_client.get(path, headers={"Accept": "*/*"}).status_code == 405
    assert admin_client.get("/api/v1/groups/readers/offsets", headers=opened).status_code == 405


def test_what_is_too_much_to_be_read_is_said_on_a_page(admin_client: Client, settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 100
    for sent in ({"name": "x" * 101}, {f"field-{number}": "x" for number in range(101)}):
        answer = admin_client.post(reverse("create_queue"), sent)
        assert answer.status_code == 400
        assert "This could not be read" in text_of(answer)
        assert "console.css" in answer.content.decode()
        assert "Content-Security-Policy" in answer.headers


def test_signing_in_and_out(client: Client) -> None:
    User.objects.create_user("ada", password="correct horse", is_staff=True)

    refused = client.post(reverse("login"), {"username": "ada", "password": "wrong"})
    accepted = client.post(reverse("login"), {"username": "ada", "password": "correct horse", "next": "/audit/"})

    assert "correct username and password" in text_of(refused)
    assert accepted.headers["Location"] == "/audit/"
    assert "ada" in text_of(client.get(reverse("overview")))
    client.post(reverse("logout"))
    assert client.get(reverse("overview")).status_code == 302


def test_what_does_not_exist_is_a_page_in_style(admin_client: Client) -> None:
    for url in ("/nowhere/", reverse("queue", args=[uuid4()]), reverse("dead_letter", args=[uuid4()])):
        response = admin_client.get(url)
        assert response.status_code == 404
        assert "There is nothing here" in text_of(response)


def test_a_page_that_breaks_says_so_in_style(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.views.overview.overview", lambda: 1 / 0)
    admin_client.raise_request_exception = False

    response = admin_client.get(reverse("overview"))

    assert response.status_code == 500
    assert "Something broke on our side" in text_of(response)


def test_a_form_without_its_token_changes_nothing(admin_user: User) -> None:
    letter = make_letter(make_queue())
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)

    response = client.post(reverse("replay_letters"), {"letter": str(letter.pk), "confirm": "yes"})

    assert response.status_code == 403
    assert "This form has expired" in text_of(response)
    assert not Operation.objects.exists()


@pytest.mark.parametrize("name", PAGES)
def test_pages_bring_no_inline_script_or_style_and_nothing_from_elsewhere(admin_client: Client, name: str) -> None:
    response = admin_client.get(reverse(name))
    page = response.content.decode()

    policy = dict(part.strip().split(" ", 1) for part in response.headers["Content-Security-Policy"].split(";"))
    assert policy.get("script-src", policy["default-src"]) == "'self'"
    assert policy["style-src"] == "'self'"
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?://", page)
    for path in re.findall(r'(?:src|href)="/static/([^"]+)"', page):
        assert finders.find(path), path


def test_nothing_that_writes_pages_writes_styles() -> None:
    """Not all that they have is on a page without figures."""
    for path in (*(ROOT / "templates").rglob("*.html"), *(ROOT / "console").rglob("*.py")):
        assert not re.search(r"""<style|\sstyle=["']""", path.read_text()), path


# Overview


def test_overview_without_figures_says_that_spark_is_starting(admin_client: Client) -> None:
    shown = text_of(admin_client.get(reverse("overview")))
    assert "Spark is starting: the first figures come within a minute" in shown
    assert "Everything is fine" not in shown


def test_overview_says_that_all_is_well(admin_client: Client) -> None:
    make_lag(make_queue(), 0)
    make_run()
    announce()
    make_process("web")

    shown = text_of(admin_client.get(reverse("overview")))

    assert "Everything is fine. All processes run, consumers keep up, and nothing waits for you." in shown
    assert "nothing waits in any queue" in shown
    assert re.search(r"Lag as of \d\d:\d\d:\d\d UTC \( 6 s ago \)", shown)


def test_overview_says_nothing_of_processes_that_nobody_supervises(admin_client: Client) -> None:
    make_lag(make_queue(), 0)
    make_run()
    announce()
    shown = text_of(admin_client.get(reverse("overview")))
    assert "Everything is fine. Consumers keep up, and nothing waits for you." in shown


def test_not_everything_is_fine_while_letters_are_quarantined(admin_client: Client) -> None:
    make_lag(make_queue(), 0)
    make_run()
    announce()
    QuarantinedLetter.objects.create(letter_topic="dlq", letter_partition=0, letter_offset=7, error="no header")
    response = admin_client.get(reverse("overview"))
    assert "1 letter could not be entered here" in text_of(response)
    assert 'href="/api/v1/dead-letters/quarantined"' in response.content.decode()
    assert "Everything is fine" not in text_of(response)


@pytest.fixture
def failed_run() -> None:
    """As in an installation that lost its Java."""
    error = SparkUnavailable(f"Spark did not start with master local[2]: Java gateway process exited; {JAVA_REMEDY}")
    record_pipeline_failure(timezone.now(), 0.1, error)


@pytest.mark.parametrize("name", ["overview", "queues", "queue", "pending_requests", "usage"])
@pytest.mark.parametrize(
    ("age_s", "figures"), [(6, "figures are of "), (240, "figures are of "), (None, "there are no figures.")]
)
def test_a_pipeline_that_cannot_run_is_told_with_the_remedy_however_old_figures_are(
    admin_client: Client, failed_run: None, name: str, age_s: float | None, figures: str
) -> None:
    queue = make_queue()
    announce()
    make_process("web")
    if age_s is not None:
        make_lag(queue, 0, age_s=age_s)
        make_run(age_s)

    response = admin_client.get(reverse(name, args=[queue.pk] if name == "queue" else []))
    [banner] = re.findall(r'<p class="banner tone-bad">.*?</p>', response.content.decode(), re.DOTALL)

    assert f"The pipeline cannot run, {figures}" in banner
    assert JAVA_REMEDY in banner
    assert f'href="{reverse("pipeline")}"' in banner
    shown = text_of(response)
    assert "Everything is fine" not in shown
    assert "Spark is starting" not in shown
    assert "the pipeline does not run" not in shown, "it is said once"


def test_overview_says_each_problem_with_a_way_to_it(admin_client: Client) -> None:
    queue = make_queue("Main")
    make_lag(queue, 12_345, status=LagStatus.WARN, reason="WARN: it goes on, and falls behind by 40 messages a second")
    make_run()
    make_letter(queue)
    make_operation(OperationState.FAILED)
    make_process("worker-spark", ProcessState.RESTARTING, restarts=3, last_exit="killed by SIGKILL")
    announce(lease_s=-60)

    response = admin_client.get(reverse("overview"))
    shown = text_of(response)

    assert "Everything is fine" not in shown
    assert "Process worker-spark is restarting (last exit: killed by SIGKILL)." in shown
    assert "No consumer host is alive" in shown
    assert "1 open dead letter waits for a decision, from 5 min ago: OutOfRange in Main, of 1 tenant." in shown
    assert "1 operation failed within a day, the last 1 min ago." in shown
    assert "Main: WARN: it goes on, and falls behind by 40 messages a second. See why" in shown
    assert f'href="{reverse("dead_letters")}?state=open"' in response.content.decode()


@pytest.mark.parametrize("name", ["overview", "queues"])
def test_where_no_queue_is_those_who_may_are_offered_to_make_one(
    admin_client: Client, client: Client, name: str
) -> None:
    assert re.search(
        rf'<div class="empty.*href="{reverse("create_queue")}"', admin_client.get(reverse(name)).content.decode()
    )
    client.force_login(person("olga", Role.OPERATOR))
    shown = client.get(reverse(name)).content.decode()
    assert reverse("create_queue") not in shown
    assert "You have the role operator, which may not change queues" in shown.partition('<div class="empty')[2]


def test_overview_shows_some_of_very_many_hosts_and_those_first_that_are_not_alive(admin_client: Client) -> None:
    make_run()
    for number in range(HOSTS_SHOWN):
        announce(f"host-{number:02}")
    announce("host-99", lease_s=-60)

    page = admin_client.get(reverse("overview"))

    assert [host.pk for host in page.context["seen"].hosts.shown][:2] == ["host-99", "host-00"]
    assert "1 more is not shown; those whose lease has expired come first." in text_of(page)
    assert "host-09" not in text_of(page)


def test_overview_never_shows_an_old_figure_as_if_it_were_fresh(admin_client: Client) -> None:
    make_lag(make_queue(), 5_000, age_s=240)
    make_run(240)
    announce()

    shown = text_of(admin_client.get(reverse("overview")))

    assert "Figures are 4 min old: the pipeline does not run, or its run takes long." in shown
    assert "not known now" in shown
    assert "was 5,000 messages 4 min ago" in shown
    assert "Everything is fine" not in shown
    assert "See why" not in shown


def test_overview_tells_missing_samples_from_a_dead_pipeline(admin_client: Client) -> None:
    """A run that finds nothing new has no row: that it succeeded is all there is of it."""
    make_run(240)
    PipelineStanding.objects.update_or_create(pk=1, defaults={"ran_at": ago(seconds=2), "succeeded_at": ago(seconds=2)})
    assert "the pipeline runs, but no new samples reach it" in text_of(admin_client.get(reverse("overview")))


def test_overview_tells_a_pipeline_that_is_behind_from_missing_samples(admin_client: Client) -> None:
    make_run(240, finished_age_s=2)
    shown = text_of(admin_client.get(reverse("overview")))
    assert "Figures are 4 min old: the pipeline runs, and is behind." in shown
    assert "no new samples reach it" not in shown


def test_overview_sums_partitions_and_puts_the_worst_queue_first(admin_client: Client) -> None:
    calm, busy = make_queue("Calm", partitions=2), make_queue("Busy", partitions=2)
    make_lag(calm, 1, lag_seconds=1.0)
    for partition in range(2):
        make_lag(busy, 40, partition=partition, lag_seconds=75.0, drain_eta_s=10.0)
    make_run()

    shown = text_of(admin_client.get(reverse("overview")))

    assert "81 messages worst in Busy : 1 min 15 s behind" in shown
    assert re.search(r"Busy OK .* 1 min 15 s 80 no history in 10 s 3 s ago", shown)
    assert shown.index("Busy OK") < shown.index("Calm OK")


def test_a_live_part_is_only_the_part(admin_client: Client) -> None:
    response = admin_client.get(reverse("overview"), headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert "<html" not in response.content.decode()
    assert "HX-Request" in response.headers["Vary"]


# Queues


def test_queues_can_be_searched_and_sorted(admin_client: Client) -> None:
    for name, lag in (("Alpha", 5), ("Beta", 500), ("Gamma", 50)):
        make_lag(make_queue(name), lag)

    by_lag = text_of(admin_client.get(reverse("queues"), {"sort": "-lag"}))
    found = text_of(admin_client.get(reverse("queues"), {"q": "gam"}))

    assert by_lag.index("Beta") < by_lag.index("Gamma") < by_lag.index("Alpha")
    assert "Gamma" in found
    assert "Alpha" not in found
    assert "Nothing matches" in text_of(admin_client.get(reverse("queues"), {"q": "nothing"}))


def test_a_queue_shows_its_partitions(admin_client: Client) -> None:
    queue = make_queue(partitions=2)
    make_lag(queue, 7, committed_offset=9_993)
    make_lag(queue, 3, partition=1, committed_offset=None)
    make_run()

    shown = text_of(admin_client.get(reverse("queue", args=[queue.pk])))

    assert re.search(r"0 OK .* nobody 10,000 9,993 7", shown)
    assert "nothing yet" in shown
    assert "10 messages" in shown


@pytest.fixture
def stored_queue(transactional_db: None) -> Iterator[Queue]:
    """A queue whose topics exist at the provider, and that messages are routed to."""
    topic = f"console_{uuid4().hex[:8]}"
    yield create_queue(SYSTEM, ensure_system_tenant(), name=topic, topic=topic, handler="log", partitions=2)
    close_provider()


@pytest.mark.django_db(transaction=True)
def test_publishing_says_where_the_message_is(admin_client: Client, stored_queue: Queue) -> None:
    entity = uuid4()
    typed = {"tenant": stored_queue.tenant_id, "entity": entity, "form": "json", "payload": '{"a": 1}'}

    response = admin_client.post(reverse("queue_messages", args=[stored_queue.pk]), typed, follow=True)

    assert re.search(
        rf"Published: stored in topic {stored_queue.topic}\.[01], partition \d, offset 0\.", text_of(response)
    )
    assert str(entity) in response.content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"entity": "not-a-uuid"}, "Enter a valid UUID."),
        ({"payload": "{oops <b>"}, "This is not JSON"),
        ({"payload": ""}, "This field is required."),
        ({"tenant": str(uuid4())}, "Select a valid choice."),
    ],
)
def test_what_was_typed_is_kept_when_it_is_refused(
    admin_client: Client, stored_queue: Queue, wrong: dict[str, str], reason: str
) -> None:
    right = {"tenant": str(stored_queue.tenant_id), "entity": str(uuid4()), "form": "json", "payload": '{"kept": 1}'}

    response = admin_client.post(reverse("queue_messages", args=[stored_queue.pk]), {**right, **wrong})

    form = response.context["form"]
    assert reason in text_of(response)
    assert {name: form[name].value() for name in right} == {**right, **wrong}
    assert "<b>" not in response.content.decode()


def test_what_the_provider_refuses_is_said(admin_client: Client) -> None:
    queue = make_queue()
    typed = {"tenant": str(queue.tenant_id), "entity": str(uuid4()), "form": "text", "payload": "hello"}

    response = admin_client.post(reverse("queue_messages", args=[queue.pk]), typed)

    assert "Not published:" in text_of(response)
    assert "hello" in response.content.decode()


def test_a_tenants_own_queue_takes_that_tenants_messages_only(admin_client: Client) -> None:
    acme, other = Tenant.objects.create(name="Acme"), Tenant.objects.create(name="Other")
    queue = make_queue(tenant=acme)

    form = admin_client.get(reverse("queue_messages", args=[queue.pk])).context["form"]

    assert list(form.fields["tenant"].queryset) == [acme]
    assert other not in form.fields["tenant"].queryset


# Dead letters


def test_no_letters_at_all_is_good_news(admin_client: Client) -> None:
    shown = text_of(admin_client.get(reverse("dead_letters"), {"state": "open"}))
    assert "No message was ever given up on" in shown


def test_no_letter_that_matches_offers_all_of_them(admin_client: Client) -> None:
    make_letter(make_queue())
    shown = text_of(admin_client.get(reverse("dead_letters"), {"state": "discarded"}))
    assert "Nothing matches" in shown
    assert "Show all dead letters" in shown


def listed(response: HttpResponse) -> set[UUID]:
    return {letter.pk for letter in response.context["page"].object_list}


def test_letters_can_be_filtered(admin_client: Client) -> None:
    acme = Tenant.objects.create(name="Acme")
    main, alarms = make_queue("Main"), make_queue("Alarms")
    hot = make_letter(main, tenant=acme, exception_message="too hot")
    cold = make_letter(alarms, exception_message="too cold", fingerprint="1111222233334444")
    done = make_letter(main, state=LetterState.REPLAYED, exception_class="builtins.KeyError")
    wanted = [
        ({}, {hot, cold, done}),
        ({"state": "open"}, {hot, cold}),
        ({"queue": main.pk}, {hot, done}),
        ({"tenant": acme.pk}, {hot}),
        ({"error": "1111222233334444"}, {cold}),
        ({"group": cold.group_id}, {cold}),
        ({"q": "COLD"}, {cold}),
        ({"q": "keyerror"}, {done}),
        ({"since": "2026-01-01T00:00", "until": "2026-01-01T00:01"}, set()),
        ({"q": alarms.topic}, {cold}),
        ({"q": str(hot.key)}, {hot}),
        ({"q": str(done.pk)}, {done}),
        ({"queue": main.pk, "state": "open"}, {hot}),
    ]
    for asked, found in wanted:
        response = admin_client.get(reverse("dead_letters"), asked)
        assert listed(response) == {letter.pk for letter in found}, asked


def test_letters_are_paged_and_links_keep_the_filters(admin_client: Client) -> None:
    queue = make_queue()
    for number in range(60):
        make_letter(queue, failed_at=ago(minutes=number))
    asked = {"queue": str(queue.pk), "sort": "failed"}

    first = admin_client.get(reverse("dead_letters"), asked)
    last = admin_client.get(reverse("dead_letters"), {**asked, "page": "3"})
    large = admin_client.get(reverse("dead_letters"), {**asked, "size": "100"})

    assert [len(listed(page)) for page in (first, last, large)] == [25, 10, 60]
    assert "1–25 of 60" in text_of(first)  # noqa: RUF001
    assert f'href="?queue={queue.pk}&amp;sort=failed&amp;page=2"' in first.content.decode()
    assert f'href="?queue={queue.pk}&amp;sort=failed&amp;size=50"' in first.content.decode()
    assert first.context["page"].object_list[0].failed_at < last.context["page"].object_list[-1].failed_at


@pytest.mark.parametrize("column", ["failed", "queue", "tenant", "error", "attempts", "state"])
def test_letters_sort_by_every_column_both_ways(admin_client: Client, column: str) -> None:
    queues = [make_queue(f"Queue{number}", Tenant.objects.create(name=f"Tenant{number}")) for number in range(2)]
    for number, queue in enumerate(queues):
        make_letter(
            queue,
            tenant=queue.tenant,
            attempts=number,
            failed_at=ago(minutes=10 - number),
            exception_class=f"Error{number}",
            state=[LetterState.DISCARDED, LetterState.OPEN][number],
        )

    rising = admin_client.get(reverse("dead_letters"), {"sort": column})
    falling = admin_client.get(reverse("dead_letters"), {"sort": f"-{column}"})

    assert [letter.attempts for letter in rising.context["page"].object_list] == [0, 1]
    assert [letter.attempts for letter in falling.context["page"].object_list] == [1, 0]
    assert 'aria-sort="descending"' in falling.content.decode()


def test_open_letters_are_grouped_by_error(admin_client: Client) -> None:
    queue = make_queue()
    for _ in range(3):
        make_letter(queue, fingerprint="1" * 16, exception_class="pkg.TooHot")
    make_letter(queue, fingerprint="2" * 16, exception_class="pkg.TooCold")
    make_letter(queue, fingerprint="3" * 16, state=LetterState.REPLAYED)

    response = admin_client.get(reverse("dead_letters"))

    groups = [row.group for row in response.context["groups"]]
    assert [(group.fingerprint[0], group.open_letters) for group in groups] == [("1", 3), ("2", 1)]
    assert f'href="?state=open&amp;group={groups[0].pk}"' in response.content.decode()


def test_tabs_count_what_the_other_filters_leave(admin_client: Client) -> None:
    main, other = make_queue("Main"), make_queue("Other")
    make_letter(main)
    make_letter(main, state=LetterState.REPLAYED)
    make_letter(other)

    tabs = admin_client.get(reverse("dead_letters"), {"queue": main.pk, "state": "open"}).context["tabs"]

    assert {tab.label: tab.number for tab in tabs if tab.number} == {"All": 2, "Open": 1, "Replayed": 1}
    assert [tab.label for tab in tabs if tab.is_current] == ["Open"]


def test_a_letter_tells_its_story(admin_client: Client) -> None:
    sent = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    letter = make_letter(
        make_queue(),
        sent_at=sent,
        headers={
            "producerId": base64.b64encode("wächter".encode()).decode(),
            "ts": base64.b64encode(struct.pack(">q", int(sent.timestamp() * 1000))).decode(),
            "odd": base64.b64encode(b"\xff\x00").decode(),
        },
    )

    shown = text_of(admin_client.get(reverse("dead_letter", args=[letter.pk])))

    assert "Sent 2026-05-04 03:02:01 UTC" in shown
    assert "producerId wächter" in shown
    assert "ts 2026-05-04 03:02:01 UTC" in shown
    assert "odd ff 00 (2 B, hex)" in shown
    assert "&quot;temperature&quot;: 21.5" in shown
    assert "JSON, 21 B" in shown
    assert str(letter.key) in shown


def test_hostile_content_is_only_ever_text(admin_client: Client) -> None:
    queue = make_queue()
    letter = make_letter(
        queue,
        payload=f'{{"note": "{HOSTILE}"}}'.encode(),
        exception_class=f"Bad{HOSTILE}",
        exception_message=f'" onmouseover="{HOSTILE}',
        stack_trace=HOSTILE,
        fingerprint="'><b>",
        handler=HOSTILE,
        key=None,
        raw_key=HOSTILE.encode(),
        headers={HOSTILE: base64.b64encode(HOSTILE.encode()).decode(), "broken": "%%%"},
    )
    operation = make_operation(error=HOSTILE, summary=HOSTILE, result={HOSTILE: HOSTILE})
    OperationLogEntry.objects.create(operation=operation, text=HOSTILE)
    AuditEntry.objects.create(
        actor_name=HOSTILE, action=HOSTILE[:50], object_type="x", object_id=HOSTILE, after={HOSTILE: HOSTILE}
    )
    make_process("web", last_exit=HOSTILE)
    urls = [
        reverse("dead_letter", args=[letter.pk]),
        reverse("dead_letters") + f"?q={HOSTILE}",
        reverse("operation", args=[operation.pk]),
        *(reverse(name) for name in PAGES),
    ]

    for url in urls:
        page = admin_client.get(url).content.decode()
        assert HOSTILE not in page, url
        assert '" onmouseover="' not in page, url
        assert "'><b>" not in page, url


@pytest.mark.parametrize("payload", [b"\xc3\x28 bad utf-8 <script>", bytes(range(256)), b"\x00" * 10_000, b""])
def test_payloads_that_are_no_text_are_shown_as_bytes(admin_client: Client, payload: bytes) -> None:
    letter = make_letter(make_queue(), payload=payload)

    response = admin_client.get(reverse("dead_letter", args=[letter.pk]))

    assert response.status_code == 200
    assert ("00000000  " in response.content.decode()) == bool(payload)


def test_a_payload_is_downloaded_as_a_file_and_never_shown(admin_client: Client) -> None:
    letter = make_letter(make_queue(), payload=HOSTILE.encode())

    response = admin_client.get(reverse("letter_payload", args=[letter.pk]))

    assert response.content == HOSTILE.encode()
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_shown_payloads_are_bounded_and_say_so() -> None:
    text, data = show_payload("ä".encode() * MAX_TEXT_BYTES), show_payload(b"\xff" * (MAX_HEX_BYTES * 2))
    assert (text.kind, text.shown_bytes, text.is_cut) == ("text", MAX_TEXT_BYTES, True)
    assert (data.kind, data.shown_bytes, data.is_cut) == ("bytes", MAX_HEX_BYTES, True)
    assert show_payload(b"[" * 60_000).kind == "text"
    assert show_payload(b"1" * 5_000).kind == "text"


def test_headers_that_are_not_what_their_name_says_are_shown_as_they_are() -> None:
    encoded = {"ts": base64.b64encode(b"soon").decode(), "expireTs": base64.b64encode(b"\x7f" + b"\xff" * 7).decode()}
    shown = dict(show_headers(encoded))
    assert (shown["ts"].at, shown["ts"].text) == (None, "soon")
    assert (shown["expireTs"].at, shown["expireTs"].kind) == (None, "bytes")


# Replay


def test_a_letter_is_replayed_from_its_page_after_the_plan(admin_client: Client, admin_user: User) -> None:
    letter = make_letter(make_queue())
    shown = admin_client.get(reverse("dead_letter", args=[letter.pk])).content.decode()
    assert re.search(rf'action="{reverse("replay_letters")}".*?name="letter" value="{letter.pk}"', shown, re.DOTALL)

    plan = admin_client.post(reverse("replay_letters"), {"letter": str(letter.pk), "back": "?state=open"})
    assert "1 message will be sent again" in text_of(plan)
    assert not Operation.objects.exists()
    response = confirm(admin_client, reverse("replay_letters"), {"letter": str(letter.pk)})

    letter.refresh_from_db()
    assert letter.state == LetterState.REPLAYING
    assert letter.replay is not None
    operation = letter.replay.operation
    assert operation.created_by == admin_user
    assert AuditEntry.objects.get(object_id=str(operation.pk)).address == "127.0.0.1"
    assert response.redirect_chain == [(reverse("operation", args=[operation.pk]), 302)]
    followed = admin_client.get(reverse("dead_letter", args=[letter.pk])).content.decode()
    assert reverse("operation", args=[operation.pk]) in followed
    assert 'hx-trigger="every 2s' in followed


def test_a_letter_that_is_being_replayed_is_not_replayed_again(admin_client: Client) -> None:
    letter = make_letter(make_queue())
    chosen = {"letter": str(letter.pk)}
    confirm(admin_client, reverse("replay_letters"), chosen)

    response = confirm(admin_client, reverse("replay_letters"), chosen)

    assert Operation.objects.count() == 1
    assert "1 are being replayed already" in text_of(response)
    shown = admin_client.get(reverse("dead_letter", args=[letter.pk])).content.decode()
    assert re.search(r'id="replay"[^>]* disabled title="It is being replayed right now\."', shown)


@pytest.mark.parametrize(
    ("state", "status"),
    [(LetterState.REPLAYING, 200), (LetterState.REPLAYED, 286), (LetterState.FAILED_AGAIN, 286)],
)
def test_a_letters_page_is_followed_until_the_replay_has_ended(
    admin_client: Client, state: LetterState, status: int
) -> None:
    letter = make_letter(make_queue(), state=state, replay=make_replay(make_operation()))
    response = admin_client.get(reverse("dead_letter", args=[letter.pk]), headers={"HX-Request": "true"})
    assert response.status_code == status
    assert state.label in text_of(response)


def test_a_letter_links_to_what_it_came_of_and_what_came_of_it(admin_client: Client) -> None:
    queue = make_queue()
    first = make_letter(queue, state=LetterState.FAILED_AGAIN)
    second = make_letter(queue, replay_of=first)

    assert (
        reverse("dead_letter", args=[second.pk])
        in admin_client.get(reverse("dead_letter", args=[first.pk])).content.decode()
    )
    assert (
        reverse("dead_letter", args=[first.pk])
        in admin_client.get(reverse("dead_letter", args=[second.pk])).content.decode()
    )


def test_selected_letters_are_planned_before_they_are_replayed(admin_client: Client) -> None:
    main, alarms = make_queue("Main"), make_queue("Alarms")
    ready = [make_letter(main), make_letter(main), make_letter(alarms)]
    done = make_letter(main, state=LetterState.REPLAYED)
    chosen = [str(letter.pk) for letter in [*ready, done]]

    plan = admin_client.post(reverse("replay_letters"), {"letter": chosen, "back": "?state=open"})

    shown = text_of(plan)
    assert "3 messages will be sent again" in shown
    assert re.search(r"Main System noop 2 .*Alarms System noop 1", shown)
    assert "Left out: 1 were replayed, and their handler succeeded." in shown
    assert not Operation.objects.exists()

    kept = re.findall(r'name="letter" value="([^"]+)"', plan.content.decode())
    confirmed = confirm(admin_client, reverse("replay_letters"), {"letter": kept})

    operation = Operation.objects.get()
    assert confirmed.redirect_chain == [(reverse("operation", args=[operation.pk]), 302)]
    assert set(operation.replay.letters.values_list("pk", flat=True)) == {letter.pk for letter in ready}


def test_a_plan_that_no_longer_holds_changes_nothing(admin_client: Client) -> None:
    queue = make_queue()
    letters = [make_letter(queue), make_letter(queue, state=LetterState.REPLAYING)]

    # All that were chosen, not only those that the plan leaves.
    chosen = {"letter": [str(letter.pk) for letter in letters]}
    planned = admin_client.post(reverse("replay_letters"), chosen).context["planned"]
    response = admin_client.post(reverse("replay_letters"), {**chosen, "planned": planned, "confirm": "yes"})

    assert "Nothing was replayed" in text_of(response)
    assert not Operation.objects.exists()


@pytest.mark.parametrize("chosen", [[], ["nonsense"], [str(uuid4())]])
def test_a_plan_of_nothing_says_so(admin_client: Client, chosen: list[str]) -> None:
    response = admin_client.post(reverse("replay_letters"), {"letter": chosen, "back": "https://elsewhere.example"})
    assert "There is nothing to replay" in text_of(response)
    assert "elsewhere" not in response.content.decode()


# Discard, restore, note


def test_letters_are_discarded_with_a_reason_after_a_plan(admin_client: Client) -> None:
    letters = [make_letter(make_queue()), make_letter(make_queue("Other"))]
    chosen = {"letter": [str(letter.pk) for letter in letters], "back": "?state=open"}

    plan = admin_client.post(reverse("discard_letters"), chosen)
    refused = admin_client.post(reverse("discard_letters"), {**chosen, "reason": " ", "confirm": "yes"})
    assert DeadLetter.objects.filter(state=LetterState.OPEN).count() == 2
    done = admin_client.post(
        reverse("discard_letters"), {**chosen, "reason": "test data", "confirm": "yes"}, follow=True
    )

    assert "2 letters will be discarded" in text_of(plan)
    assert "Nothing was discarded: say why the letters are discarded" in text_of(refused)
    assert "2 letters were discarded." in text_of(done)
    assert done.redirect_chain[0][0] == f"{reverse('dead_letters')}?state=open"
    shown = text_of(admin_client.get(reverse("dead_letter", args=[letters[0].pk])))
    assert "by admin: test data" in shown
    assert "Discarded by admin, with 2 letters in all: test data" in shown


def test_the_plan_of_a_decision_says_whose_letters_they_are(admin_client: Client) -> None:
    acme, bolt = create_tenant(SYSTEM, "Acme"), create_tenant(SYSTEM, "Bolt")
    shared, own = make_queue("Main"), make_queue("Main", acme)
    whose = ((shared, acme), (shared, acme), (shared, bolt), (shared, None), (own, acme))
    chosen = [str(make_letter(queue, tenant=tenant).pk) for queue, tenant in whose]
    shown = text_of(admin_client.post(reverse("discard_letters"), {"letter": chosen}))
    for told in ("Main Acme 2", "Main Bolt 1", "Main none named 1", "Main of Acme Acme 1"):
        assert told in shown
    some = text_of(admin_client.post(reverse("discard_letters"), {"letter": chosen[:2]}))
    assert "Main Acme 2" in some
    assert "Bolt" not in some


def test_discarded_letters_are_restored_from_their_tab(admin_client: Client) -> None:
    letter = make_letter(make_queue(), state=LetterState.DISCARDED)

    listed_page = admin_client.get(reverse("dead_letters"), {"state": "discarded"})
    done = admin_client.post(reverse("restore_letters"), {"letter": [str(letter.pk)], "confirm": "yes"}, follow=True)

    assert "Restore selected" in text_of(listed_page)
    assert "Replay selected" not in text_of(listed_page)
    assert "1 letter was restored." in text_of(done)
    letter.refresh_from_db()
    assert letter.state == LetterState.OPEN


def test_letters_whose_outcome_never_came_are_released_from_their_tab(admin_client: Client) -> None:
    letter = make_letter(make_queue())
    replay = start_replay(SYSTEM, [letter.pk])
    chosen = {"letter": [str(letter.pk)], "reason": "the topic was emptied", "confirm": "yes"}
    page = reverse("dead_letter", args=[letter.pk])

    assert "Its replay is not over." in text_of(admin_client.get(page))
    refused = admin_client.post(reverse("release_letters"), chosen)
    Operation.objects.filter(pk=replay.operation_id).update(state=OperationState.SUCCEEDED, finished_at=timezone.now())
    listed_page = admin_client.get(reverse("dead_letters"), {"state": "replaying"})
    offered = admin_client.get(page)
    done = admin_client.post(reverse("release_letters"), chosen, follow=True)

    assert "Nothing was released: 1 of the letters is still replaying" in text_of(refused)
    assert "Release selected" in text_of(listed_page)
    assert "Opens it again where its message is gone" in text_of(offered)
    assert "1 letter was released." in text_of(done)


def test_a_whole_group_is_replayed_or_discarded(admin_client: Client) -> None:
    queue = make_queue()
    group = make_letter(queue).group_id
    for _ in range(2):
        make_letter(queue)
    other = make_letter(queue, fingerprint="1" * 16)

    page = admin_client.get(reverse("dead_letters"), {"group": group})
    plan = admin_client.post(reverse("replay_letters"), {"group": group})
    assert "Letters 3, of these 3 open" in text_of(page)
    assert "3 messages will be sent again" in text_of(plan)
    assert 'name="ramp" value="1, 10, 100"' in plan.content.decode()
    assert f'name="group" value="{group}"' in plan.content.decode()

    admin_client.post(reverse("discard_letters"), {"group": group, "reason": "known", "confirm": "yes"})
    assert DeadLetter.objects.filter(state=LetterState.DISCARDED).count() == 3
    other.refresh_from_db()
    assert other.state == LetterState.OPEN


def test_somebody_else_was_quicker(admin_client: Client) -> None:
    letter = make_letter(make_queue(), state=LetterState.REPLAYING)
    asked = {"letter": [str(letter.pk)], "reason": "test data", "confirm": "yes"}
    shown = text_of(admin_client.post(reverse("discard_letters"), asked))
    assert "Nothing was discarded: 1 of the letters is not open but replaying" in shown


@pytest.mark.parametrize("name", ["discard_letters", "restore_letters", "release_letters"])
@pytest.mark.parametrize("chosen", [{}, {"letter": ["nonsense"]}, {"group": "9" * 30}, {"group": "-1"}])
def test_a_decision_on_nothing_says_so(admin_client: Client, name: str, chosen: dict[str, Any]) -> None:
    assert "no letter was chosen" in text_of(admin_client.post(reverse(name), chosen)).lower()


def test_notes_are_shown_where_they_help(admin_client: Client) -> None:
    letter = make_letter(make_queue())

    admin_client.post(reverse("note_letter", args=[letter.pk]), {"note": f"customer was told {HOSTILE}"})
    of_group = admin_client.post(reverse("note_group", args=[letter.group_id]), {"note": "ticket 4711"}, follow=True)

    page = admin_client.get(reverse("dead_letter", args=[letter.pk]))
    assert "customer was told" in page.content.decode()
    assert HOSTILE not in page.content.decode()
    assert "Of its group: ticket 4711" in text_of(page)
    assert 'value="ticket 4711"' in of_group.content.decode()


def test_an_edited_letter_shows_both_messages(admin_client: Client) -> None:
    letter = make_letter(make_queue())
    edit_letter(SYSTEM, letter.pk, QueueMessage(None, b'{"temperature": 20}', {}))
    shown = text_of(admin_client.get(reverse("dead_letter", args=[letter.pk])))
    assert "&quot;temperature&quot;: 21.5" in shown
    assert "&quot;temperature&quot;: 20" in shown
    assert "as it was edited" in shown


def test_many_letters_are_sorted_by_time_and_not_all_can_be_turned_over(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.views.dead_letters.COUNTED", 3)
    queue = make_queue()
    for number in range(5):
        make_letter(queue, failed_at=ago(minutes=number))

    response = admin_client.get(reverse("dead_letters"), {"sort": "attempts"})

    assert len(listed(response)) == 3
    assert "More than 3 letters are sorted by time alone" in text_of(response)
    assert "These are the first 3 of 5" in text_of(response)


def test_letters_that_could_not_be_entered_are_told_of(admin_client: Client) -> None:
    make_letter(make_queue())
    QuarantinedLetter.objects.create(letter_topic="a.dlq", letter_partition=0, letter_offset=7, error="no queue")
    shown = text_of(admin_client.get(reverse("dead_letters")))
    assert "1 letter could not be entered here" in shown


# Operations


def test_operations_can_be_filtered_by_state(admin_client: Client) -> None:
    make_operation(summary="Still running")
    make_operation(OperationState.FAILED, summary="Went wrong")

    shown = text_of(admin_client.get(reverse("operations"), {"state": "failed"}))

    assert "Went wrong" in shown
    assert "Still running" not in shown
    assert "Nothing matches" in text_of(admin_client.get(reverse("operations"), {"state": "cancelled"}))


def test_the_list_of_operations_keeps_itself_up_to_date(admin_client: Client) -> None:
    operation = make_operation(done=1)
    page = admin_client.get(reverse("operations")).content.decode()
    assert 'hx-trigger="every 5s, wake"' in page
    Operation.objects.filter(pk=operation.pk).update(done=2)
    part = admin_client.get(reverse("operations"), headers={"HX-Request": "true"})
    assert "HX-Request" in part.headers["Vary"]
    assert "<html" not in part.content.decode()
    assert '<progress max="100" value="50"' in part.content.decode()


def test_no_operations_yet(admin_client: Client) -> None:
    assert "No operations yet" in text_of(admin_client.get(reverse("operations")))


def test_an_operation_shows_progress_log_and_letters(admin_client: Client) -> None:
    operation = make_operation(done=1)
    OperationLogEntry.objects.create(operation=operation, text="Sent the first")
    make_letter(make_queue(), state=LetterState.REPLAYING, replay=make_replay(operation))

    response = admin_client.get(reverse("operation", args=[operation.pk]))
    shown = text_of(response)

    assert '<progress max="100" value="25"' in response.content.decode()
    assert "1 of 4" in shown
    assert "Sent the first" in shown
    assert "1 replaying" in shown


def test_an_operation_is_followed_until_its_letters_have_ended(admin_client: Client) -> None:
    operation = make_operation(OperationState.SUCCEEDED, done=4)
    letter = make_letter(make_queue(), state=LetterState.REPLAYING, replay=make_replay(operation))
    url, htmx = reverse("operation", args=[operation.pk]), {"HX-Request": "true"}

    assert admin_client.get(url, headers=htmx).status_code == 200
    DeadLetter.objects.filter(pk=letter.pk).update(state=LetterState.REPLAYED)
    assert admin_client.get(url, headers=htmx).status_code == 286


def test_an_operation_is_cancelled_once(admin_client: Client) -> None:
    operation = make_operation()
    url = reverse("cancel_operation", args=[operation.pk])

    asked = text_of(admin_client.get(url))
    operation.refresh_from_db()
    assert operation.state == OperationState.RUNNING
    assert "What runs stops at its next step; what was not sent yet stays open." in asked
    first = admin_client.post(url, follow=True)

    operation.refresh_from_db()
    assert operation.state == OperationState.CANCELLING
    assert "That cannot be done" in text_of(admin_client.get(url))
    assert "Cancelling: what runs stops at its next step." in text_of(first)
    assert "It is being cancelled already." in text_of(first)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("isolate_tenant", "Its messages stay in the shared queues"),
        ("return_tenant", "Its messages go on to its own queues"),
        ("backfill", "Days that were made anew stay so"),
        ("count", "what is done stays"),
    ],
)
def test_what_comes_of_cancelling_depends_on_what_is_under_way(admin_client: Client, kind: str, told: str) -> None:
    operation = make_operation()
    Operation.objects.filter(pk=operation.pk).update(kind=kind)
    for name in ("operation", "cancel_operation"):
        assert told in text_of(admin_client.get(reverse(name, args=[operation.pk]))), name


def test_an_operation_that_is_over_is_not_cancelled(admin_client: Client) -> None:
    operation = make_operation(OperationState.SUCCEEDED, done=4)

    response = admin_client.post(reverse("cancel_operation", args=[operation.pk]), follow=True)

    assert "Not cancelled: this operation has already succeeded" in text_of(response)
    assert re.search(r'id="cancel"[^>]* disabled title="It is over: succeeded\."', response.content.decode())


@pytest.mark.parametrize(
    "name",
    [
        "replay_letters",
        "discard_letters",
        "restore_letters",
        "release_letters",
        "note_letter",
    ],
)
def test_what_changes_something_is_never_a_link(admin_client: Client, name: str) -> None:
    arguments = [] if name.endswith("_letters") else [uuid4()]
    assert admin_client.get(reverse(name, args=arguments)).status_code == 405


# Audit


def test_audit_entries_can_be_filtered(admin_client: Client) -> None:
    for actor, action, kind in (("ada", "create", "queue"), ("bob", "cancel_operation", "operation")):
        AuditEntry.objects.create(actor_name=actor, action=action, object_type=kind, object_id=f"id-of-{kind}")

    for asked in ({"actor": "ad"}, {"action": "create"}, {"target": "queue"}, {"target": "id-of-q"}):
        shown = text_of(admin_client.get(reverse("audit"), asked))
        assert "ada" in shown, asked
        assert "bob" not in shown, asked
    assert "Nothing matches" in text_of(admin_client.get(reverse("audit"), {"actor": "eve"}))


def test_the_audit_calls_things_by_their_names(admin_client: Client) -> None:
    queue = make_queue("Orders", Tenant.objects.create(name="Greenhouse"))
    told = {"actor_name": "ada", "object_type": "queue"}
    AuditEntry.objects.create(**told, action="change", object_id=str(queue.pk), after={"retries": 3})
    AuditEntry.objects.create(**told, action="delete", object_id=str(uuid4()), before={"name": "Returns"})
    AuditEntry.objects.create(**told, action="pause", object_id="a text that is no id")
    shown = text_of(admin_client.get(reverse("audit")))
    for name in ("Orders", "Returns", "a text that is no id"):
        assert f"queue {name}" in shown
    page = admin_client.get(reverse("audit")).content.decode()
    assert f'href="{reverse("queue", args=[queue.pk])}"' in page
    assert f'title="{queue.pk}"' in page


def test_lists_tell_the_exact_time_to_who_cannot_point_at_its_age(admin_client: Client) -> None:
    failed_at = make_letter(make_queue()).failed_at
    decided_at = LedgerEntry.objects.create(actor_name="ada", action=LedgerAction.NOTE).at
    audited_at = AuditEntry.objects.create(actor_name="ada", action="x", object_type="y", object_id="1").at
    for name, at in (("dead_letters", failed_at), ("ledger", decided_at), ("audit", audited_at)):
        assert f"{at:%Y-%m-%d %H:%M:%S} UTC" in text_of(admin_client.get(reverse(name))), name


# Speed


def fill(rows: int) -> None:
    replay = make_replay(make_operation())
    for number in range(rows):
        queue = make_queue(f"Queue{next(_numbers)}", Tenant.objects.create(name=f"Tenant{next(_numbers)}"))
        make_lag(queue, number)
        make_letter(queue, tenant=queue.tenant, fingerprint=f"{number:016x}", replay=replay)
        make_operation(created_by=User.objects.create_user(f"user{next(_numbers)}"))
        AuditEntry.objects.create(actor_name="ada", action="create", object_type="queue", object_id=str(queue.pk))
        make_process(f"process{next(_numbers)}")
        announce(f"host{next(_numbers)}")
    make_run()


@pytest.mark.parametrize("name", PAGES)
def test_pages_ask_the_database_as_often_for_many_rows_as_for_few(
    admin_client: Client, django_assert_max_num_queries: Any, name: str
) -> None:
    asked = []
    # What a process asks for once is asked for here.
    admin_client.get(reverse(name))
    for rows in (2, 20):
        fill(rows)
        with django_assert_max_num_queries(MOST_QUERIES) as queries:
            admin_client.get(reverse(name), {"size": "100"})
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_details_ask_the_database_a_bounded_number_of_times(
    admin_client: Client, django_assert_max_num_queries: Any
) -> None:
    fill(20)
    letter, operation = DeadLetter.objects.first(), Operation.objects.earliest("created_at")
    assert letter is not None
    for name, pk in (("queue", letter.queue_id), ("dead_letter", letter.pk), ("operation", operation.pk)):
        with django_assert_max_num_queries(MOST_QUERIES):
            admin_client.get(reverse(name, args=[pk]))
