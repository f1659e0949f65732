"""The web server as `manage.py up` starts it, on an installation of its own, and senders that cost it little."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from queuecore.testing.services.ports import free_port
from queuecore.testing.waiting import wait_until
from tests.benchmarks.processes import run_together, took_s
from tests.benchmarks.workload import check_count

ROOT: Final = Path(__file__).parents[2]
ENTITIES: Final = 1_000
WORKERS: Final = int(os.environ.get("BENCH_REST_WORKERS", 2))

_UNLIMITED: Final = "1000000000"


@dataclass(frozen=True, slots=True)
class Installed:
    """An installation with one queue, `bench`, and a token for it: what every server has a copy of."""

    folder: Path
    token: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens, and what a sender needs to know."""

    port: int
    token: str
    tenant: str


def install(folder: Path) -> Installed:
    """Made once: that takes longer than to measure."""
    folder.mkdir(parents=True)
    [outcome] = run_together([partial(_installing, folder)])
    return Installed(folder, *outcome.result)


@contextmanager
def web_server(installed: Installed, folder: Path, *command: str) -> Iterator[Server]:
    """Ours, or what this command serves, on a copy of the installation."""
    shutil.copytree(installed.folder, folder, dirs_exist_ok=True)
    port = free_port()
    environ = os.environ | {
        "SWITCHYARD_DATA_DIR": str(folder),
        "SWITCHYARD_WEB_PORT": str(port),
        "SWITCHYARD_WEB_WORKERS": str(WORKERS),
        "SWITCHYARD_REST_REQUESTS_PER_MINUTE": _UNLIMITED,
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }
    serving = [sys.executable, *(command or ("manage.py", "web"))]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(serving, cwd=ROOT, env=environ, stdout=log, stderr=subprocess.STDOUT)
    server = Server(port, installed.token, installed.tenant)
    try:
        wait_until(partial(_answers, server))
        yield server
    finally:
        process.terminate()
        process.wait()


def publishing_rate(server: Server, path: str, batch: int, requests: int, senders: int) -> float:
    """Messages a second that are stored, by senders that each keep a connection and wait for every answer."""
    jobs = [partial(_sending, server, path, batch, requests, number) for number in range(senders)]
    outcomes = run_together(jobs)
    for outcome in outcomes:
        check_count("answers", outcome.result, requests * batch)
    return senders * requests * batch / took_s(outcomes)


@contextmanager
def _installing(folder: Path) -> Iterator[Callable[[], tuple[str, str]]]:
    os.environ |= {"SWITCHYARD_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "console.settings"}
    import django

    django.setup()

    def work() -> tuple[str, str]:
        from django.contrib.auth.models import User

        from queueapi.actions.actor import SYSTEM, Actor
        from queueapi.actions.queues import create_queue
        from queueapi.actions.tenants import create_tenant, ensure_system_tenant
        from queueapi.actions.tokens import create_token
        from queueapi.bootstrap import ADMINISTRATOR, bootstrap
        from queueapi.runtime import close_provider

        bootstrap("correct horse battery")
        create_queue(SYSTEM, ensure_system_tenant(), name="bench", topic="bench", handler="log", partitions=4)
        tenant = create_tenant(SYSTEM, "Greenhouse")
        user = User.objects.get(username=ADMINISTRATOR)
        actor = Actor(ADMINISTRATOR, user)
        _, token = create_token(actor, "bench", ["messages:write"], expires_at=None)
        close_provider()
        return token, str(tenant.id)

    yield work


@contextmanager
def _sending(server: Server, path: str, batch: int, requests: int, number: int) -> Iterator[Callable[[], int]]:
    """The work is to send; how many messages were said to be stored."""
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    bodies = [_body(server, batch, number * requests + one) for one in range(min(requests, 50))]
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)

    def post(body: bytes) -> int:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        told = answer.read()
        if answer.status != 201:
            raise RuntimeError(f"{path} answered {answer.status}: {told[:500]!r}")
        return batch

    # What is opened, imported and remembered once is not what is measured.
    for _ in range(20 if batch == 1 else 3):
        post(bodies[0])
    yield lambda: sum(post(bodies[one % len(bodies)]) for one in range(requests))
    connection.close()


def _body(server: Server, batch: int, number: int) -> bytes:
    messages = [_message(server, number * batch + one) for one in range(batch)]
    return json.dumps(messages[0] if batch == 1 else {"messages": messages}).encode()


def _message(server: Server, number: int) -> dict[str, Any]:
    """Of about 100 bytes, as those of the other benchmarks."""
    payload = {"number": number, "temperature": 21.5, "text": "." * 50}
    return {"tenant": server.tenant, "entity": str(UUID(int=number % ENTITIES)), "payload": payload}


def _answers(server: Server) -> bool:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()
