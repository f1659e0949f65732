"""Queues of older installations are consumed as before, on both databases."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.system import ROOT

FILL = """
import uuid
from django.db import connection
with connection.cursor() as cursor:
    tenant = uuid.uuid4().hex
    cursor.execute("insert into queueapi_tenant (id, name, created_at) values (%s, 'x', '2026-01-01')", [tenant])
    for name, retries in (("tries", 3), ("gives_up", 0)):
        cursor.execute(
            "insert into queueapi_queue (id, tenant_id, name, topic, service_type, partitions, handler,"
            " poll_interval_ms, retries, retry_pause_ms, max_retry_pause_ms, created_at)"
            " values (%s, %s, %s, %s, 'TB_CORE', 3, 'log', 25, %s, 1, 2, '2026-01-01')",
            [uuid.uuid4().hex, tenant, name, name, retries],
        )
"""
SHOW = """
import json
from queueapi.models import Queue
rows = Queue.objects.values("name", "submit_strategy", "processing_strategy", "delivery", "retries")
print(json.dumps(list(rows.order_by("-name"))))
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


def test_queues_of_older_installations_are_consumed_as_before(environment: dict[str, str]) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
        return done.stdout

    run("manage.py", "migrate", "--verbosity", "0", "queueapi", "0002")
    run("-c", f"import django; django.setup(){FILL}")
    run("manage.py", "migrate", "--verbosity", "0")
    as_before = {"submit_strategy": "SEQUENTIAL", "delivery": "at_least_once"}
    assert json.loads(run("-c", f"import django; django.setup(){SHOW}")) == [
        {**as_before, "name": "tries", "processing_strategy": "RETRY_FAILED", "retries": 3},
        {**as_before, "name": "gives_up", "processing_strategy": "SKIP_ALL_FAILURES", "retries": 0},
    ]
