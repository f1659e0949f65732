"""PostgreSQL: the control plane's database."""

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from queuecore.testing.services.accounts import Account, unprivileged_account
from queuecore.testing.services.base import Service
from queuecore.testing.services.errors import ServiceFailed
from queuecore.testing.services.ports import LOOPBACK
from queuecore.testing.services.process import clean_environment, run_tool

DATABASE = "switchyard"
USER = "switchyard"

# Debian keeps the servers out of PATH, one directory per major version; others do likewise.
SERVER_DIRECTORIES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql@*/bin")

# A crash of the machine may cost all data; in return nothing waits for the disk.
EPHEMERAL_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def find_binaries() -> Path | None:
    """Return the directory with PostgreSQL's programs: that of the initdb in PATH, else the newest installed."""
    in_path = shutil.which("initdb")
    if in_path:
        return Path(in_path).resolve().parent
    installed = [path for pattern in SERVER_DIRECTORIES for path in Path("/").glob(pattern)]
    usable = [path for path in installed if (path / "initdb").exists()]
    return max(usable, key=_major_version, default=None)


def _major_version(binaries: Path) -> int:
    digits = "".join(filter(str.isdigit, binaries.parent.name))
    return int(digits or 0)


def claim(directory: Path, account: Account) -> None:
    """Make `directory` the account's own; raises `ServiceFailed` when somebody else made it first."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.is_symlink() or directory.stat().st_uid not in (os.geteuid(), account.uid):
        raise ServiceFailed(f"{directory} belongs to somebody else; remove it, or set TMPDIR elsewhere")
    account.give(directory)


class PostgresService(Service):
    """A PostgreSQL cluster of its own with the database `switchyard`, reachable by password over loopback.

    PostgreSQL refuses to run as root: then it runs as `postgres` or `nobody`, and where that user cannot
    enter the data directory, its files live in a directory of its own under the system's temporary one.
    """

    name = "postgres"
    # SIGTERM would wait for every client to leave by itself; SIGINT disconnects them and shuts down cleanly.
    stop_signal = signal.SIGINT

    def __init__(self, data_dir: Path, *, ephemeral: bool = False) -> None:
        super().__init__(data_dir, ephemeral=ephemeral)
        self.account = unprivileged_account("postgres")
        self._home = self.data_dir

    def missing(self) -> str | None:
        """Say how to get PostgreSQL's server programs when they are not found."""
        if find_binaries():
            return None
        return (
            "PostgreSQL's server (initdb) is not installed (the control plane's database): run scripts/require "
            "postgresql, or install the package postgresql (apt, brew) or postgresql-server (dnf)"
        )

    @property
    def home(self) -> Path:
        """Where the cluster is; under the temporary directory when its user cannot enter the data directory."""
        return self._home

    @property
    def url(self) -> str:
        """The address as libpq and Django take it, with the generated password."""
        return f"postgresql://{USER}:{self._password_file.read_text().strip()}@{self.address}/{DATABASE}"

    def environment(self) -> dict[str, str]:
        """Point the control plane at this database."""
        return {"SWITCHYARD_DATABASE_URL": self.url}

    @property
    def _cluster(self) -> Path:
        return self._home / "cluster"

    @property
    def _password_file(self) -> Path:
        return self._home / "password"

    def _binary(self, name: str) -> str:
        return str((find_binaries() or Path()) / name)

    def _prepare(self) -> None:
        self._home = self._choose_home()
        if not self._cluster.exists():
            self._create_cluster()
        # Left by a server that was killed. The directory's lock is ours, so no server lives here, even
        # if the process id in it has gone to another process since, which PostgreSQL would stumble over.
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)

    def _choose_home(self) -> Path:
        if self.account is None:
            return self.data_dir
        self.account.give(self.data_dir)
        if self.account.can_enter(self.data_dir):
            return self.data_dir
        digest = hashlib.sha256(str(self.data_dir).encode()).hexdigest()[:16]
        fallback = Path(tempfile.gettempdir()) / f"switchyard-postgres-{digest}"
        claim(fallback, self.account)
        if self.account.can_enter(fallback):
            return fallback
        raise ServiceFailed(
            f"PostgreSQL does not run as root, and its user {self.account.name!r} can enter neither "
            f"{self.data_dir} nor {fallback}; choose a data directory which that user can reach"
        )

    def _create_cluster(self) -> None:
        """Set the cluster up aside and rename it: a setup that was killed leaves no half of one."""
        draft = self._home / "cluster.new"
        shutil.rmtree(draft, ignore_errors=True)
        self._write_password()
        run_tool(
            (
                *(self._binary("initdb"), f"--pgdata={draft}", f"--username={USER}"),
                *(f"--pwfile={self._password_file}", "--auth=scram-sha-256"),
                *("--encoding=UTF8", "--no-locale", "--no-instructions"),
                *(["--no-sync"] if self.ephemeral else []),
            ),
            cwd=self._home,
            account=self.account,
        )
        run_tool(
            (self._binary("postgres"), "--single", "-D", str(draft), "postgres"),
            cwd=self._home,
            account=self.account,
            stdin=f"CREATE DATABASE {DATABASE}\n",
        )
        draft.rename(self._cluster)

    def _write_password(self) -> None:
        self._password_file.touch(mode=0o600)
        if self.account:
            self.account.give(self._password_file)
        self._password_file.write_text(secrets.token_urlsafe(16))

    def _command(self) -> tuple[str, ...]:
        # TCP on loopback alone: a socket file would be one more thing to place, own and clean up.
        settings = [f"listen_addresses={LOOPBACK}", f"port={self.port}", "unix_socket_directories="]
        settings += EPHEMERAL_SETTINGS if self.ephemeral else ()
        options = [part for setting in settings for part in ("-c", setting)]
        return (self._binary("postgres"), "-D", str(self._cluster), *options)

    def _answers(self) -> bool:
        probe = (self._binary("pg_isready"), "-q", "-h", LOOPBACK, "-p", str(self.port), "-d", DATABASE, "-U", USER)
        return subprocess.run(probe, env=clean_environment(), check=False).returncode == 0
