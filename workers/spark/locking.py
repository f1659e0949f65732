"""One at a time: runs, back-fill and the store's upkeep. The lock is a file beside the checkpoints, so that all who
could use these share it, whichever process they are in; the kernel releases it with the process."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from queueapi.config import Config
from workers.spark.errors import PipelineBusy

_here = threading.Lock()


@contextmanager
def pipeline_lock(installation: Config) -> Iterator[None]:
    """Waits for others of this process; PipelineBusy where another process has it."""
    folder = installation.folder("spark")
    with _here, (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineBusy(
                f"another process runs the pipeline on {folder}; this run is left out, as that one takes its events"
            ) from None
        yield
