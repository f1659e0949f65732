"""The containers' health checks, against what they look at."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import redis

from queuecore.testing.services import RedisService
from scripts import healthcheck
from tests.services import running


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisService]:
    """A broker nobody else is connected to."""
    for service in running(RedisService(tmp_path / "redis", ephemeral=True)):
        monkeypatch.setenv("SWITCHYARD_BROKER_URL", service.url)
        yield service


@contextmanager
def server(status: int, body: object) -> Iterator[tuple[int, list[str | None]]]:
    """A web server with one answer; gives its port and the protocol each caller said the user came with."""
    protocols: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            protocols.append(self.headers["X-Forwarded-Proto"])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield http.server_port, protocols
        finally:
            http.shutdown()
            thread.join()


def test_celery_is_healthy_while_a_process_here_is_connected(
    broker: RedisService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert healthcheck.main(["celery"]) == 1
    assert "no process here is connected to the broker" in capsys.readouterr().err

    with closing(redis.Redis.from_url(broker.url)) as worker:
        worker.ping()
        assert healthcheck.main(["celery"]) == 0


def test_celery_is_unhealthy_without_a_broker(broker: RedisService, capsys: pytest.CaptureFixture[str]) -> None:
    broker.stop()

    assert healthcheck.main(["celery"]) == 1
    assert "unhealthy: " in capsys.readouterr().err


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_web_is_healthy_when_it_answers_200(status: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with server(status, {"status": "whatever"}) as (port, protocols):
        monkeypatch.setenv("SWITCHYARD_WEB_PORT", str(port))
        assert healthcheck.main(["web"]) == code
    assert protocols == ["https"], "production mode would redirect anything else"


def test_web_is_unhealthy_when_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(200, {}) as (port, _):
        monkeypatch.setenv("SWITCHYARD_WEB_PORT", str(port))

    assert healthcheck.main(["web"]) == 1


def test_spark_is_healthy_when_the_master_leads_and_the_worker_is_registered() -> None:
    with server(200, {"status": "ALIVE", "masterurl": "spark://spark-master:7077"}) as (port, _):
        healthcheck.check_spark_master(f"http://127.0.0.1:{port}/json/")
        healthcheck.check_spark_worker(f"http://127.0.0.1:{port}/json/")

    with server(200, {"status": "RECOVERING", "masterurl": ""}) as (port, _):
        with pytest.raises(healthcheck.Unhealthy, match="RECOVERING"):
            healthcheck.check_spark_master(f"http://127.0.0.1:{port}/json/")
        with pytest.raises(healthcheck.Unhealthy, match="not registered"):
            healthcheck.check_spark_worker(f"http://127.0.0.1:{port}/json/")


def test_an_unknown_role_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert healthcheck.main(["wbe"]) == 2
    assert "web" in capsys.readouterr().err
