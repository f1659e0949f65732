"""The user a service runs as, where it refuses to run as root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Account:
    """A system user, by the numbers the kernel knows."""

    name: str
    uid: int
    gid: int

    def can_enter(self, directory: Path) -> bool:
        """Whether this user can reach and enter `directory`; may be asked by root only.

        Asked of the kernel by trying, as mode bits alone miss ACLs and parents.
        """
        result = subprocess.run(
            ["test", "-x", str(directory)],
            cwd="/",
            user=self.uid,
            group=self.gid,
            extra_groups=[],
            check=False,
        )
        return result.returncode == 0

    def give(self, path: Path) -> None:
        """Make this user the owner of `path`, and nobody else welcome."""
        os.chown(path, self.uid, self.gid)
        path.chmod(0o700 if path.is_dir() else 0o600)


def unprivileged_account(*preferred: str) -> Account | None:
    """Return the first of the users that exists, when this process is root; None when it need not change."""
    if os.geteuid() != 0:
        return None
    for name in (*preferred, "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    return None
