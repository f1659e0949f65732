"""Secrets nobody has to think up: generated once, kept, readable by their owner alone."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from queueapi.config import unusable_data_dir


def kept_secret(path: Path, length: int = 48) -> str:
    """The secret in the file, which is made where it is missing. Two first readers at once agree on one.

    ConfigurationError where it can be neither read nor made.
    """
    try:
        with suppress(FileExistsError):
            _create(path, secrets.token_urlsafe(length))
        return path.read_text().strip()
    except OSError as error:
        raise unusable_data_dir(path, error) from error


def _create(path: Path, value: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise FileExistsError(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(value)
        os.link(draft, path)
    finally:
        draft.unlink()
