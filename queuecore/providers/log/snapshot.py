"""The catalog for those who only look: a copy of it, so that nothing in its folder is touched."""

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from queuecore.errors import CorruptLog, ForeignFile, ProviderUnavailable
from queuecore.providers.log.database import CATALOG, Database

# Of the write-ahead log's header: two numbers that change when it begins anew.
_SALT = slice(16, 24)
_ATTEMPTS = 100


@contextmanager
def catalog_snapshot(root: Path) -> Iterator[Database]:
    """The catalog as it is now. ProviderUnavailable where there is none, CorruptLog where it is damaged, ForeignFile
    where it is not one of this version's."""
    path = root / CATALOG
    if not path.is_file():
        raise ProviderUnavailable(f"there is no log under {root}: {path} is missing; name the folder of one")
    with TemporaryDirectory(prefix="switchyard-catalog-") as folder:
        _copy(path, Path(folder))
        try:
            database = Database(Path(folder))
        except ForeignFile as error:
            raise ForeignFile(error.message.replace(folder, str(root)), file=str(path)) from error
        except (sqlite3.Error, ProviderUnavailable) as error:
            raise _damaged(path, error) from error
        with closing(database):
            _check(database, path)
            yield database


def _copy(path: Path, to: Path) -> None:
    """File first, then its write-ahead log. Together they are whole as long as that log was not begun anew in between:
    whatever went from the log to the file meanwhile is in the log still.

    A process that closes the file loses the locks it has on it, so another one copies it: this may be a process that
    has the catalog open.
    """
    log = path.with_name(f"{path.name}-wal")
    for _ in range(_ATTEMPTS):
        before = _salt(log)
        copying = subprocess.run(["cp", "--", path, to / path.name], check=False, capture_output=True, text=True)
        if copying.returncode:
            raise ProviderUnavailable(f"{path} cannot be read: {copying.stderr.strip()}; check who may")
        copied = to / log.name
        copied.unlink(missing_ok=True)
        if log.exists():
            try:
                shutil.copyfile(log, copied)
            except FileNotFoundError:
                continue
        if _salt(copied) == before:
            return
    raise ProviderUnavailable(f"{path} changes too fast to be copied; try again")


def _salt(log: Path) -> bytes:
    try:
        with log.open("rb") as file:
            return file.read(_SALT.stop)[_SALT]
    except FileNotFoundError:
        return b""


def _check(database: Database, path: Path) -> None:
    try:
        with database.reading() as db:
            problems = [problem for (problem,) in db.execute("pragma integrity_check(1)")]
    except ProviderUnavailable as error:
        raise _damaged(path, error) from error
    if problems != ["ok"]:
        raise _damaged(path, ProviderUnavailable("; ".join(problems)))


def _damaged(path: Path, error: Exception) -> CorruptLog:
    cause = error.__cause__ or error
    return CorruptLog(f"the catalog {path} is damaged: {cause}; restore it from a copy", file=str(path))
