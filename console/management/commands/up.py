"""Run the whole system: web, consumers, tasks, Spark and beat as child processes."""

import fcntl
import os
import socket
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from console.secrets import kept_secret
from queueapi.bootstrap import ADMINISTRATOR, bootstrap
from queueapi.config import Config, config, unusable_data_dir
from queueapi.listening import with_port_after
from queueapi.runtime import close_provider
from queueapi.supervisor.child import Child
from queueapi.supervisor.children import ChildSpec, children
from queueapi.supervisor.output import Output
from queueapi.supervisor.supervisor import Supervisor
from queuecore.errors import QueueError


class Command(BaseCommand):
    help = __doc__
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="add sample tenants and live traffic")

    def handle(self, *args: Any, demo: bool, **options: Any) -> None:
        os.umask(0o077)  # messages, passwords and the database are for our own user; children inherit it
        current = config()
        with _only_one(current.data / "up.lock"):
            _check_port(current)
            password = kept_secret(current.data / "admin-password", length=12)
            _prepare(password)
            output = Output("up")
            output.say(f"starting; data is in {current.data}")
            folder = Path(settings.BASE_DIR)
            # Absolute, as children start in another folder than we did.
            environment = {"SWITCHYARD_DATA_DIR": str(current.data)}
            processes = [
                Child(spec, Output(spec.name, number), folder, environment | _metrics_address(spec, current))
                for number, spec in enumerate(children(demo=demo))
            ]
            supervisor = Supervisor(processes, output)
            supervisor.run(lambda: _answers(current), lambda: _announce(output, current, password))


def _metrics_address(spec: ChildSpec, current: Config) -> dict[str, str]:
    """Each has its own: two processes cannot listen on one."""
    if not current.metrics_listen or spec.metrics_port is None:
        return {}
    return {"SWITCHYARD_METRICS_LISTEN": with_port_after(current.metrics_listen, spec.metrics_port)}


def _prepare(password: str) -> None:
    """Everything that can be wrong is found before the first child starts."""
    try:
        bootstrap(password)
        close_provider()
    except (QueueError, DatabaseError, OSError) as error:
        raise CommandError(f"cannot prepare this installation: {' '.join(str(error).split())}") from error


def _only_one(path: Path) -> IO[str]:
    """Hold the data folder for this supervisor; the kernel lets go of it whatever happens."""
    try:
        lock = path.open("a+", buffering=1)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate(0)
        print(os.getpid(), file=lock)
    except BlockingIOError:
        holder = path.read_text().strip()
        raise CommandError(f"`manage.py up` already runs on this data folder, as process {holder}; stop it") from None
    except OSError as error:
        raise unusable_data_dir(path, error) from error
    return lock


def _check_port(current: Config) -> None:
    with socket.socket(socket.AF_INET6 if ":" in current.web_host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((current.web_host, current.web_port))
        except OSError as error:
            raise CommandError(
                f"cannot listen on {current.web_host} port {current.web_port} ({error.strerror}); stop what uses it "
                "or set SWITCHYARD_WEB_PORT to another"
            ) from error


def _answers(current: Config) -> bool:
    try:
        with socket.create_connection((_reachable(current.web_host), current.web_port), timeout=0.2):
            return True
    except OSError:
        return False


def _reachable(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "") else host  # noqa: S104 - compared, not bound


def _announce(output: Output, current: Config, password: str) -> None:
    output.say("")
    output.say(f"  Switchyard is ready:  http://{_reachable(current.web_host)}:{current.web_port}")
    output.say(f"  sign in as            {ADMINISTRATOR}")
    output.say(f"  with the password     {password}")
    output.say("")
    output.say("Ctrl-C stops it. Lag appears on the first page once Spark has run, in under a minute.")
