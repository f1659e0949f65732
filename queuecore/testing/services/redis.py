"""Redis: the broker of the background tasks."""

import shutil

from queuecore.testing.services.base import Service
from queuecore.testing.services.ports import LOOPBACK, exchange

PONG = b"+PONG\r\n"


class RedisService(Service):
    """A `redis-server` of its own; it keeps its data in an append-only file, or not at all when ephemeral."""

    name = "redis"

    def missing(self) -> str | None:
        """Say how to get `redis-server` when it is not in PATH."""
        if shutil.which("redis-server"):
            return None
        return (
            "redis-server is not installed (the tasks' broker): run scripts/require redis, "
            "or install the package redis-server (apt) or redis (dnf, brew)"
        )

    @property
    def url(self) -> str:
        """The address as Celery and redis-py take it."""
        return f"redis://{self.address}/0"

    def environment(self) -> dict[str, str]:
        """Point the tasks at this broker."""
        return {"SWITCHYARD_BROKER_URL": self.url}

    def _prepare(self) -> None:
        """Nothing to set up: Redis makes its files in its directory by itself."""

    def _command(self) -> tuple[str, ...]:
        # No snapshots ("save" empty): with its defaults Redis would write one at moments of its choosing.
        return (
            *("redis-server", "--bind", LOOPBACK, "--port", str(self.port), "--daemonize", "no"),
            *("--dir", str(self.home), "--save", "", "--appendonly", "no" if self.ephemeral else "yes"),
        )

    def _answers(self) -> bool:
        return exchange(self.port, b"PING\r\n", reply_bytes=len(PONG)) == PONG
