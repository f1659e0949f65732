"""Kafka's jars: fetched once with Maven, kept in a cache outside the tree."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from queuecore.testing.services.errors import ServiceMissing
from queuecore.testing.services.locking import locked
from queuecore.testing.services.process import tail

POM = Path(__file__).with_name("kafka-pom.xml")
FETCH_TIMEOUT_S = 900.0


def kafka_version() -> str:
    """The version the pom asks for."""
    found = re.search(r"<kafka\.version>(.+?)</kafka\.version>", POM.read_text())
    if found is None:
        raise ValueError(f"{POM} names no <kafka.version>")
    return found.group(1)


def cache_directory() -> Path:
    """`SWITCHYARD_CACHE_DIR`, by default a directory in the user's cache."""
    return Path(os.environ.get("SWITCHYARD_CACHE_DIR") or Path.home() / ".cache" / "switchyard").resolve()


def jar_directory() -> Path:
    """Where the pom's jars are, or will be; where it exists, it is complete.

    Named by the pom as a whole: one that asks for other jars is fetched next to what there was.
    """
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]
    return cache_directory() / f"kafka-{kafka_version()}-{digest}"


def fetch_jars() -> Path:
    """Return the directory of the jars, fetching them first where needed; raises `ServiceMissing`.

    Any number of processes may call this at once: one fetches, the others wait for it.
    """
    target = jar_directory()
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.with_name(f"{target.name}.lock"), timeout_s=FETCH_TIMEOUT_S):
        if not target.is_dir():
            _fetch_into(target)
    return target


def _fetch_into(target: Path) -> None:
    """Fetch aside and rename: a fetch that was killed leaves parts, which the next one clears, but no cache."""
    for leftover in target.parent.glob(f"{target.name}.part-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{target.name}.part-", dir=target.parent))
    try:
        _run_maven(draft, log=target.with_name(f"{target.name}.log"))
        draft.chmod(0o755)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _run_maven(destination: Path, log: Path) -> None:
    command = ["mvn", "--batch-mode", "--file", str(POM), "dependency:copy-dependencies"]
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={destination}"]
    try:
        with log.open("wb") as output:
            subprocess.run(
                command + options,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=FETCH_TIMEOUT_S,
                check=True,
            )
    except subprocess.SubprocessError:
        raise ServiceMissing(
            f"Maven could not fetch Kafka {kafka_version()}; check that it can reach its repository "
            f"(proxy and mirror are set in Maven's settings.xml), then try again. The end of {log}:\n{tail(log)}"
        ) from None
