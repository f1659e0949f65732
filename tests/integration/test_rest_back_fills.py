"""Making summaries anew over REST: asked for, planned, refused. What becomes of it is told in test_pipeline.py."""

from datetime import UTC, date, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from queueapi.config import config
from queueapi.event_files import UNREADABLE, event_folder
from queueapi.models import AuditEntry, Operation, PipelineStanding
from tests.stored_events import store_events

BACKFILLS = Operation.objects.filter(kind="backfill")
PATH = "/api/v1/pipeline/back-fills"


def days_ago(days: int) -> date:
    return timezone.now().astimezone(UTC).date() - timedelta(days=days)


def ask(api, first: int, last: int | None = None, query: str = ""):
    """For days so many days ago."""
    body = {"first": days_ago(first).isoformat()} | ({} if last is None else {"last": days_ago(last).isoformat()})
    return api.post(f"{PATH}{query}", body)


@pytest.fixture
def api(admin_api, installation):
    """Of an installation with events of yesterday and today."""
    store_events(days_ago(1), 5)
    store_events(days_ago(1), 2, "sent_samples")
    store_events(days_ago(0), 3)
    return admin_api


def test_it_is_an_operation_of_so_many_days(api) -> None:
    answer = ask(api, 2, 0)
    assert answer.status_code == 202, answer.json()
    operation = BACKFILLS.get()
    assert answer.json()["id"] == str(operation.id)
    first, last = days_ago(2).isoformat(), days_ago(0).isoformat()
    assert (operation.kind, operation.total, operation.params) == ("backfill", 3, {"first": first, "last": last})
    assert operation.summary == f"Make summaries anew of {first} to {last}"
    entry = AuditEntry.objects.get(action="start_operation", object_id=str(operation.id))
    assert entry.after["params"] == operation.params


def test_the_last_day_left_out_is_the_first(api) -> None:
    assert ask(api, 1).status_code == 202
    assert BACKFILLS.get().params == {"first": days_ago(1).isoformat(), "last": days_ago(1).isoformat()}


def test_the_plan_says_what_is_there_and_what_is_missing(api) -> None:
    (event_folder(config()) / "offset_samples" / days_ago(1).isoformat() / f"0-0-x-0{UNREADABLE}").touch()
    answer = ask(api, 2, 0, "?dry_run=true")
    assert answer.status_code == 200, answer.json()
    plan = answer.json()
    assert [(day["day"], day["events"], day["files"], day["unreadable"]) for day in plan["days"]] == [
        (days_ago(2).isoformat(), {}, 0, 0),
        (days_ago(1).isoformat(), {"offset_samples": 5, "sent_samples": 2}, 2, 1),
        (days_ago(0).isoformat(), {"offset_samples": 3}, 1, 0),
    ]
    assert [change["after"] for change in plan["changes"]] == [
        "made anew of 7 events in 2 files; what none of these tells of goes",
        "made anew of 3 events in 1 files; what none of these tells of goes",
    ]
    nothing, harmed = plan["warnings"]
    assert nothing == f"of {days_ago(2)} no events are stored: its summaries stay as they are"
    assert harmed.startswith(f"of {days_ago(1)} 1 files cannot be read")
    assert (plan["why_not"], BACKFILLS.exists()) == ("", False)


def test_a_file_that_is_no_parquet_counts_as_unreadable(api) -> None:
    (event_folder(config()) / "sent_samples" / days_ago(0).isoformat()).mkdir()
    (event_folder(config()) / "sent_samples" / days_ago(0).isoformat() / "0-0-x-0.parquet").write_bytes(b"PAR1")
    [day] = ask(api, 0, query="?dry_run=true").json()["days"]
    assert (day["events"], day["files"], day["unreadable"]) == ({"offset_samples": 3}, 2, 1)


@pytest.mark.parametrize(
    ("first", "last", "why"),
    [
        (0, 1, "give the first day first"),
        (0, -1, "is yet to come"),
        (7, 0, "kept no more (SWITCHYARD_EVENT_RETENTION_DAYS)"),
        (4, 3, "no events are stored of"),
    ],
)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_days_that_cannot_be_made_anew_are_refused(api, first, last, why, query) -> None:
    answer = ask(api, first, last, query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert why in answer.json()["detail"]
    assert not BACKFILLS.exists()


def test_so_many_days_that_it_would_never_end_are_refused(api, monkeypatch) -> None:
    monkeypatch.setattr("queueapi.selectors.backfill_plans.MOST_DAYS", 2)
    answer = ask(api, 2, 0)
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "3 days are too many for one operation; ask for 2 at most, then for more",
    )


def test_what_is_no_day_is_said_by_its_field(api) -> None:
    answer = api.post(PATH, {"first": "yesterday"})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["first"])


def test_there_is_one_at_a_time(api) -> None:
    ask(api, 0)
    again = ask(api, 1)
    assert (again.status_code, again.json()["code"]) == (409, "already_under_way")
    plan = ask(api, 1, query="?dry_run=true").json()
    assert plan["why_not"] == again.json()["detail"]
    assert plan["summary"].startswith("nothing would change: ")


def test_events_that_cannot_be_seen_from_here_are_not_said_to_be_none(api) -> None:
    PipelineStanding.objects.update(store_id="another machine's")
    plan = ask(api, 1, 0, "?dry_run=true").json()
    assert (plan["days"], plan["changes"]) == ([], [])
    assert "that this machine does not share" in plan["warnings"][0]
    assert ask(api, 3).status_code == 202


def test_before_the_first_run_there_is_nothing_to_make_anew(admin_api, installation) -> None:
    assert "no events are stored of" in ask(admin_api, 0).json()["detail"]


def test_the_command_shows_the_same_plan(api) -> None:
    told = StringIO()
    call_command("backfill_summaries", "--from", f"{days_ago(1)}", "--to", f"{days_ago(0)}", "--dry-run", stdout=told)
    assert f"summaries of {days_ago(1)}: made anew of 7 events in 2 files" in told.getvalue()
    assert not BACKFILLS.exists()


@pytest.mark.parametrize(("query", "queries"), [("?dry_run=true", 2), ("", 11)])
def test_what_it_asks_the_database(api, query, queries, django_assert_num_queries) -> None:
    """However many days. Who asks is remembered from the first time."""
    ask(api, 0, query="?dry_run=true")
    for days in (2, 0):
        with django_assert_num_queries(queries):
            assert ask(api, days, 0, query).status_code in (200, 202)
        BACKFILLS.all().delete()
