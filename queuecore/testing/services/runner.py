"""Run a set of services until told to stop, and say how to reach them."""

import os
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from queuecore.testing.services.base import Service
from queuecore.testing.services.errors import ServiceError

WATCH_S = 0.5


def say(text: str) -> None:
    """Tell the user; at once, as the output may be a pipe."""
    print(text, flush=True)


def complain(text: str) -> None:
    """Tell the user about trouble."""
    print(text, file=sys.stderr, flush=True)


def exports(environment: dict[str, str]) -> str:
    """The variables as lines a shell can read."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())


class Runner:
    """Services that are started, watched and stopped together; for the main thread."""

    def __init__(self, services: Sequence[Service], env_file: Path) -> None:
        self.services = services
        self.env_file = env_file
        self.started: list[Service] = []
        self._wrote_env_file = False

    def start(self) -> list[str]:
        """Start what can be started, telling how to reach it; return the names of those that did not start."""
        failed = [service.name for service in self.services if not self._start(service)]
        if self.started:
            self._write_env_file()
            say(f"\nUse them in another shell with\n    . {shlex.quote(str(self.env_file))}\nStop with Ctrl-C.")
        return failed

    def watch(self) -> None:
        """Return when a service died, having said so; otherwise never."""
        while True:
            for service in self.started:
                if service.exit_code() is not None:
                    complain(f"{service.obituary()}\nStopping the rest.")
                    return
            time.sleep(WATCH_S)

    def stop(self) -> None:
        """Stop all that runs, the last started first; the file that points at them goes too."""
        if self._wrote_env_file:  # else it is that of another runner on the same directory
            self.env_file.unlink(missing_ok=True)
        for service in reversed(self.services):
            service.stop()

    def _start(self, service: Service) -> bool:
        say(f"Starting {service.name} ...")
        try:
            service.start()
        except (ServiceError, OSError) as error:
            complain(f"{service.name} is not available: {error}")
            return False
        self.started.append(service)
        say(f"{service.name} answers on {service.address} (data in {service.home}, log {service.log})")
        say("".join(f"    {line}" for line in exports(service.environment()).splitlines(keepends=True)).rstrip())
        return True

    def _write_env_file(self) -> None:
        """Replace the file in one step, readable by its owner alone: it holds the database's password."""
        draft = self.env_file.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write("".join(exports(environment) for environment in self._environments()))
        draft.rename(self.env_file)
        self._wrote_env_file = True

    def _environments(self) -> Iterable[dict[str, str]]:
        return (service.environment() for service in self.started)
