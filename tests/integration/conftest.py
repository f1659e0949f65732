"""An installation of its own for each test that asks for one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from queueapi import runtime, wakeups
from queueapi.actions.actor import SYSTEM
from queueapi.actions.provisioning import provision_metrics
from queueapi.actions.queues import create_queue
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.celery_config import celery_settings
from queueapi.models import Queue, Tenant
from queuecore.providers.memory import MemoryProvider


@dataclass(frozen=True)
class Installation:
    """A database, a log and a broker in files, with one queue and one tenant."""

    queue: Queue
    tenant: Tenant
    folder: Path


@pytest.fixture(params=["log", "in-memory"])
def each_provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `usefixtures`: the installation is on each of these in turn."""
    if request.param == "in-memory":
        monkeypatch.setattr(runtime, "open_provider", lambda _: MemoryProvider())


@pytest.fixture
def admin_api(installation: Installation) -> APIClient:
    """REST as an administrator has it."""
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root", password="secret"))
    return client


@pytest.fixture
def installation(tmp_path: Path, settings, transactional_db) -> Iterator[Installation]:
    with installed(tmp_path, settings) as made:
        yield made


@contextmanager
def installed(folder: Path, settings: Any) -> Iterator[Installation]:
    """In this folder, and in the database of the test."""
    settings.SWITCHYARD = replace(settings.SWITCHYARD, data_dir=folder)
    settings.CELERY = celery_settings(settings.SWITCHYARD)
    wakeups._sender.cache_clear()
    runtime.close_provider()
    provision_metrics()
    queue = create_queue(
        SYSTEM,
        ensure_system_tenant(),
        name="Telemetry",
        topic="telemetry",
        handler="demo.rule_engine",
        processing_strategy="RETRY_FAILED",
        retries=1,
        retry_pause_ms=1,
        max_retry_pause_ms=1,
    )
    yield Installation(queue, create_tenant(SYSTEM, "Greenhouse"), folder)
    runtime.close_provider()
    wakeups._sender.cache_clear()
