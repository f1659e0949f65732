"""Certificates for servers on loopback and their clients, made with openssl."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from queuecore.testing.services.ports import LOOPBACK
from queuecore.testing.services.process import run_tool

VALID_DAYS = 30
# Else openssl adds what the machine's own configuration says.
CONFIGURATION = "[req]\ndistinguished_name = name\n[name]\n"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def missing_openssl() -> str | None:
    """Say how to get `openssl` when it is not in PATH."""
    if shutil.which("openssl"):
        return None
    return (
        "openssl is not installed (it makes certificates): run scripts/require openssl, or install the package openssl"
    )


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path

    def in_one_file(self) -> Path:
        """The key and the certificate together, as Kafka wants its own."""
        both = self.certificate.with_suffix(".both.pem")
        both.write_text(self.key.read_text() + self.certificate.read_text())
        return both


class Authority:
    """Vouches for others. All its files are in `folder`, which it makes; one that is there stays as it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = Certificate(folder / "authority.pem", folder / "authority.key")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "openssl.conf").write_text(CONFIGURATION)
        if not self.own.certificate.exists():
            self._make(self.own, "authority", "-addext", "basicConstraints=critical,CA:TRUE", "-nodes")

    def issue(self, name: str, *, key_password: str = "") -> Certificate:
        """A certificate for `name`, which a client is then known as, and for a server on loopback."""
        issued = Certificate(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        if not issued.certificate.exists():
            lock = ("-passout", f"pass:{key_password}") if key_password else ("-nodes",)
            signed = ("-CA", str(self.own.certificate), "-CAkey", str(self.own.key))
            self._make(issued, name, "-addext", f"subjectAltName=IP:{LOOPBACK},DNS:localhost", *signed, *lock)
        return issued

    def _make(self, made: Certificate, name: str, *arguments: str) -> None:
        """The certificate is there only once it is complete."""
        draft = made.certificate.with_suffix(".new")
        command = (
            "openssl",
            "req",
            "-x509",
            "-config",
            "openssl.conf",
            "-days",
            str(VALID_DAYS),
            "-subj",
            f"/CN={name}",
        )
        run_tool((*command, *KEY, "-keyout", str(made.key), "-out", str(draft), *arguments), cwd=self.folder)
        draft.rename(made.certificate)
