"""An installation from before letters had groups, bodies and replays of their own."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from queueapi.actions.letter_recount import recount_letters
from queueapi.models import DeadLetter, DeadLetterGroup, Replay
from tests.databases import on_database

BEFORE = ("queueapi", "0004_operation_waits")
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def old_models(request: pytest.FixtureRequest, tmp_path: Path, transactional_db) -> Iterator[Any]:
    """The models of a database that was not migrated yet."""
    url = f"sqlite:///{tmp_path / 'old.sqlite3'}" if request.param == "sqlite" else new_postgres_database(request)
    with on_database(url):
        call_command("migrate", *BEFORE, verbosity=0)
        yield MigrationExecutor(connection).loader.project_state(BEFORE).apps


def new_postgres_database(request: pytest.FixtureRequest) -> str:
    service = request.getfixturevalue("postgres_service")
    with psycopg.connect(service.url, autocommit=True) as server:
        server.execute("create database old_letters")
    return service.url.rpartition("/")[0] + "/old_letters"


def make_old_letters(models: Any) -> list[UUID]:
    """One that was replayed, one whose replay failed, one that was sent, one that waits, and one that never was."""
    tenant = models.get_model("queueapi", "Tenant").objects.create(id=uuid4(), name="Acme")
    queues = models.get_model("queueapi", "Queue").objects
    queue = queues.create(tenant=tenant, name="Main", topic="main", handler="log")
    ids = [uuid4() for _ in range(5)]
    operation = models.get_model("queueapi", "Operation").objects.create(
        kind="replay_letters", summary="Replay", total=4, params={"letters": [str(letter) for letter in ids[:4]]}
    )
    for number, state in enumerate(("replayed", "failed_again", "replaying", "replaying", "open")):
        models.get_model("queueapi", "DeadLetter").objects.create(
            id=ids[number], queue=queue, tenant=tenant if number else None, state=state, letter_topic="main.dlq",
            letter_partition=0, letter_offset=number, topic="main.0", partition=0, offset=number, sent_at=AT,
            headers={"customer": "YWNtZQ=="}, payload=b"data", handler="log", consumer_group="group", reason="failed",
            exception_class="Hot", exception_message="too hot", stack_trace="Traceback", fingerprint="f" * 16,
            attempts=1, first_failed_at=AT, failed_at=AT, replay=operation if number < 4 else None,
            replay_sent_at=AT if number < 3 else None,
        )  # fmt: skip
    return ids


def test_letters_get_groups_bodies_and_replays(old_models) -> None:
    ids = make_old_letters(old_models)
    call_command("migrate", verbosity=0)
    group = DeadLetterGroup.objects.get()
    assert (group.letters, group.open_letters, group.exception_message) == (5, 1, "too hot")
    assert recount_letters() == []
    letter = DeadLetter.objects.select_related("body").get(id=ids[0])
    assert (bytes(letter.body.payload), letter.body.stack_trace, letter.payload_size) == (b"data", "Traceback", 4)
    replay = Replay.objects.get()
    assert letter.replay == replay
    assert [(item.letter_id, item.state) for item in replay.items.all()] == list(
        zip(ids[:4], ["succeeded", "failed", "sent", "pending"], strict=True)
    )
    assert (replay.sent, replay.succeeded, replay.failed) == (3, 1, 1)
