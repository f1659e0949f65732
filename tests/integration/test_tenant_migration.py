"""An installation from before tenants had profiles."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql

from queueapi.choices import TenantState
from queueapi.models import DEFAULT_PROFILE, Tenant, TenantProfile
from tests.databases import on_database

BEFORE = ("queueapi", "0010_instances_of_the_cluster")


@pytest.fixture(params=["sqlite", "postgresql"])
def old_models(request: pytest.FixtureRequest, tmp_path: Path, transactional_db) -> Iterator[Any]:
    """The models of a database that was not migrated yet."""
    url = f"sqlite:///{tmp_path / 'old.sqlite3'}" if request.param == "sqlite" else new_postgres_database(request)
    with on_database(url):
        call_command("migrate", *BEFORE, verbosity=0)
        yield MigrationExecutor(connection).loader.project_state(BEFORE).apps


def new_postgres_database(request: pytest.FixtureRequest) -> str:
    service, name = request.getfixturevalue("postgres_service"), f"old_tenants_{uuid4().hex}"
    with psycopg.connect(service.url, autocommit=True) as server:
        server.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return f"{service.url.rpartition('/')[0]}/{name}"


def test_tenants_get_the_default_profile_and_are_active(old_models) -> None:
    old = old_models.get_model("queueapi", "Tenant").objects
    for name in ("System", "Acme"):
        old.create(id=uuid4(), name=name)
    call_command("migrate", verbosity=0)
    assert TenantProfile.objects.get().is_default
    assert {(row.profile_id, row.state, row.messages_per_s) for row in Tenant.objects.all()} == {
        (DEFAULT_PROFILE, TenantState.ACTIVE, None)
    }
    assert Tenant.objects.count() == 2


def test_it_can_be_taken_back_and_done_again(old_models) -> None:
    old_models.get_model("queueapi", "Tenant").objects.create(id=uuid4(), name="Acme")
    call_command("migrate", verbosity=0)
    call_command("migrate", *BEFORE, verbosity=0)
    call_command("migrate", verbosity=0)
    assert Tenant.objects.get().profile.is_default
