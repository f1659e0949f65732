"""Who was staff before there were roles is an administrator, and the audit is kept, on both databases."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.system import ROOT

FILL = """
from django.contrib.auth.models import User
from django.db import connection
User.objects.create_user("ada", is_staff=True)
User.objects.create_superuser("root")
User.objects.create_user("guest")
with connection.cursor() as cursor:
    cursor.execute(
        "insert into queueapi_auditentry (at, actor_name, action, object_type, object_id)"
        " values ('2026-01-01', 'ada', 'create', 'queue', '1')"
    )
"""
SHOW = """
from django.db import DatabaseError, connection
from queueapi.models import Account, AuditEntry
print(*Account.objects.order_by("user__username").values_list("user__username", "role", "tenant"))
for change in ("update queueapi_auditentry set action = 'x'", "delete from queueapi_auditentry"):
    try:
        with connection.cursor() as cursor:
            cursor.execute(change)
    except DatabaseError as error:
        print(str(error).splitlines()[0])
print(AuditEntry.objects.get().action)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Of an installation whose database is empty."""
    variables = {**os.environ, "SWITCHYARD_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "console.settings"}
    if request.param == "sqlite":
        return variables
    server = request.getfixturevalue("postgres_service").url
    name = f"migration_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'create database "{name}"')
    return variables | {"SWITCHYARD_DATABASE_URL": f"{server.rpartition('/')[0]}/{name}"}


def test_staff_of_older_installations_are_administrators_and_the_audit_is_kept(environment: dict[str, str]) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
        return done.stdout

    run("manage.py", "migrate", "--verbosity", "0", "auth")
    run("manage.py", "migrate", "--verbosity", "0", "queueapi", "0010")
    run("-c", f"import django; django.setup(){FILL}")
    run("manage.py", "migrate", "--verbosity", "0")
    assert run("-c", f"import django; django.setup(){SHOW}").splitlines() == [
        "('ada', 'administrator', None) ('root', 'administrator', None)",
        *["the audit is never changed"] * 2,
        "create",
    ]
    run("manage.py", "migrate", "--verbosity", "0", "queueapi", "0010")
