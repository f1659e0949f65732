"""The whole system as its users run it: `manage.py up` in a folder of its own, on a port of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from http.cookiejar import CookieJar
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from queueapi.supervisor.child import die_with_parent
from queuecore.testing.services.ports import free_port
from queuecore.testing.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60


class RunningSystem:
    """Starts on entering, stops with SIGINT on leaving. Its output is kept in `log`."""

    def __init__(self, data_dir: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.metrics_listen = f"127.0.0.1:{free_port()}"
        self.log = data_dir / "up.log"
        self._options = options
        self._environment = dict(environment or {})
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "RunningSystem":
        self.data_dir.mkdir(parents=True, exist_ok=True)
        settings = {
            "SWITCHYARD_DATA_DIR": str(self.data_dir),
            "SWITCHYARD_WEB_PORT": str(self.port),
            "SWITCHYARD_METRICS_LISTEN": self.metrics_listen,
            "SWITCHYARD_METRICS_INTERVAL_S": "2",
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", *self._options],
                cwd=ROOT,
                env={**os.environ, **settings, **self._environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                # A test run that is killed leaves no system behind.
                preexec_fn=die_with_parent(),
            )
        try:
            wait_until(self.is_ready, READY_TIMEOUT_S)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """Ctrl-C; the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_TIMEOUT_S)

    def is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"`manage.py up` ended with {self.process.returncode}:\n{self.output()}")
        return "Switchyard is ready" in self.output()

    def wait_for_demo(self) -> None:
        """Until the demo's rule engine works on messages, and no longer the handler that a new installation has."""
        wait_until(lambda: self.request("GET", "dead-letters?text=demo.rule_engine")["results"])

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def password(self) -> str:
        return (self.data_dir / "admin-password").read_text().strip()

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Call the REST interface as the administrator; the parsed answer. HTTPError above 399."""
        data = None if body is None else json.dumps(body).encode()
        with self._open(method, f"/api/v1/{path}", data, "application/json") as answer:
            return json.load(answer)

    def page(self, path: str) -> str:
        """A page of the console, as its HTML."""
        with self._open("GET", path, None, "text/html") as answer:
            return str(answer.read(), "utf-8")

    def metrics(self) -> str:
        """What the demo's transport shows Prometheus. OSError while it does not run."""
        with urllib.request.urlopen(f"http://{self.metrics_listen}/metrics", timeout=30) as answer:
            return str(answer.read(), "utf-8")

    def _open(self, method: str, path: str, data: bytes | None, content_type: str) -> Any:
        """Signed in by session, as a browser is: hashing the password for each request would take most of the time."""
        if not self._cookies:
            self._opener.open(f"{self.url}/login/", timeout=30).close()
            form = {"username": "admin", "password": self.password, "csrfmiddlewaretoken": self._token()}
            self._opener.open(f"{self.url}/login/", urlencode(form).encode(), timeout=30).close()
        headers = {"Content-Type": content_type, "X-CSRFToken": self._token()}
        request = urllib.request.Request(f"{self.url}{path}", method=method, data=data, headers=headers)  # noqa: S310
        return self._opener.open(request, timeout=30)

    def _token(self) -> str:
        return next(cookie.value or "" for cookie in self._cookies if cookie.name == "switchyard_csrf")

    def get_all(self, path: str) -> list[Any]:
        """Every row of a paged list."""
        rows: list[Any] = []
        answer = self.request("GET", path)
        while True:
            rows += answer["results"]
            if not answer["next"]:
                return rows
            answer = self.request("GET", answer["next"].split("/api/v1/")[1])

    def pids(self) -> dict[str, int]:
        """The children that run now, by name, from the process table of the kernel."""
        assert self.process is not None
        found = {}
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                parent = re.search(r"^PPid:\t(\d+)$", status.read_text(), re.MULTILINE)
                command = (status.parent / "cmdline").read_bytes().decode().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent and int(parent[1]) == self.process.pid and (name := _child_name(command)):
                found[name] = int(status.parent.name)
        return found


def _child_name(command: str) -> str | None:
    marks = {
        "web": "manage.py web",
        "consumer": "--hostname consumer@",
        "tasks": "--hostname tasks@",
        "spark": "--hostname spark@",
        "beat": "workers.app beat",
        "core-api": "-m workers.demo.core_api",
        "traffic": "-m workers.demo ",
    }
    return next((name for name, mark in marks.items() if mark in command), None)
