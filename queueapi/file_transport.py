"""Celery's messages as files, for an installation without Redis.

Like kombu's own filesystem transport, with three promises that one does not make: a message appears whole or not at
all, a file that is no message never stops a worker, and nothing leaves the data folder. Who listens to which queue is
not kept in files, so there is no fanout; we use none.
"""

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)

SCHEME = "switchyard-files"
TAKEN = "taken"

# kombu wants an address to name its transport by an alias, never by an import path.
TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"


class Channel(virtual.Channel):
    """A message of queue `q` is a file `<when>-<unique>.q.msg` in `folder`; other names are nobody's message."""

    @property
    def folder(self) -> Path:
        """From the transport's options. It has a folder `taken`, on the same file system."""
        return Path(self.connection.client.transport_options["folder"])

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        """OperationalError where the message cannot be stored, and then nothing of it is left."""
        path = self.folder / f"{time.time_ns():020d}-{uuid.uuid4().hex}.{queue}.msg"
        draft = path.with_name(f"{path.name}.draft")
        try:
            draft.write_text(dumps(message))  # type: ignore[no-untyped-call]
            draft.rename(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise OperationalError(f"cannot store a message in {self.folder}: {error.strerror}") from error

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:  # noqa: ARG002 - kombu's signature
        for path in self._messages(queue):
            taken = path.parent / TAKEN / path.name
            try:
                path.rename(taken)
            except FileNotFoundError:
                continue  # another worker was faster
            try:
                message = _read(taken)
            except (OSError, ValueError) as error:
                logger.warning("%s is no message and is left where it is: %s", taken, error)
                continue
            taken.unlink()
            return message
        raise Empty

    def _size(self, queue: str) -> int:
        return sum(1 for _ in self._messages(queue))

    def _purge(self, queue: str) -> int:
        count = 0
        for path in self._messages(queue):
            path.unlink(missing_ok=True)
            count += 1
        return count

    def _messages(self, queue: str) -> Iterator[Path]:
        """Oldest first."""
        for path in sorted(self.folder.iterdir()):
            if path.name.partition(".")[2] == f"{queue}.msg":
                yield path


class Transport(virtual.Transport):
    Channel = Channel
    driver_type = driver_name = "files"

    def driver_version(self) -> str:
        return "N/A"


def _read(path: Path) -> dict[str, Any]:
    """ValueError where the file holds no message."""
    message: dict[str, Any] = loads(path.read_bytes())  # type: ignore[no-untyped-call]
    try:
        message["properties"]["delivery_tag"]
    except (LookupError, TypeError):
        raise ValueError("it lacks what every message has") from None
    return message
