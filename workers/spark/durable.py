"""Files that a power cut does not undo."""

import os
from pathlib import Path

from queuecore.providers.log.files import sync_directory


def sync_file(path: Path) -> None:
    """Make what is in it durable, not its name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, text: str) -> None:
    """The file, with its name and those that its folder has got before."""
    path.write_text(text)
    sync_file(path)
    sync_directory(path.parent)
