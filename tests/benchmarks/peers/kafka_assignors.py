"""Kafka's own assignors, in a JVM that stays warm: see `KafkaAssignors.java`, which is compiled as it starts."""

import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from queuecore.testing.services import ServiceError
from queuecore.testing.services.java import find_java, missing_java
from queuecore.testing.services.kafka_jars import fetch_jars
from tests.benchmarks.measuring import NotAvailable

KafkaAssignor = Literal["cooperative", "range"]

_SOURCE: Final = Path(__file__).with_name("KafkaAssignors.java")
_JARS: Final = ("kafka-clients-*.jar", "slf4j-api-*.jar")


class KafkaAssignors:
    """Asks the JVM, or says why there is none."""

    def __init__(self, process: "subprocess.Popen[str] | None", log: Path, unavailable: str = "") -> None:
        self._process = process
        self._log = log
        self._unavailable = unavailable

    def plan(
        self,
        assignor: KafkaAssignor,
        members: Sequence[str],
        topics: Mapping[str, int],
        current: Mapping[str, str],
        runs: int,
    ) -> tuple[dict[str, str], float]:
        """The member of each partition, which is called `topic-number`, and how many seconds the last run took."""
        if self._process is None:
            raise NotAvailable(self._unavailable)
        owned: dict[str, list[str]] = defaultdict(list)
        for partition, owner in current.items():
            owned[owner].append(partition)
        question = [
            f"{assignor} {runs}",
            " ".join(f"{topic}={count}" for topic, count in topics.items()),
            *(" ".join((member, *owned[member])) for member in members),
            "",
        ]
        return self._ask("".join(f"{line}\n" for line in question))

    def _ask(self, question: str) -> tuple[dict[str, str], float]:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(question)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        nanos, _rounds, *members = self._answer()
        words = [line.split(" ") for line in members]
        return {partition: member for member, *owned in words for partition in owned}, int(nanos) / 1e9

    def _answer(self) -> list[str]:
        """Up to the empty line."""
        assert self._process is not None
        assert self._process.stdout is not None
        lines: list[str] = []
        while (line := self._process.stdout.readline()) != "\n":
            if not line:
                raise self._ended()
            lines.append(line.rstrip("\n"))
        return lines

    def _ended(self) -> NotAvailable:
        return NotAvailable(f"the JVM has ended: {' '.join(self._log.read_text().split())[-300:]}")


@contextmanager
def kafka_assignors(folder: Path) -> Iterator[KafkaAssignors]:
    """A JVM as long as the context lasts, where there can be one."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "kafka-assignors.log"
    try:
        command = _command()
    except (NotAvailable, ServiceError) as reason:
        yield KafkaAssignors(None, log, str(reason))
        return
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        )
    with process:
        try:
            yield KafkaAssignors(process, log)
        finally:
            process.kill()


def _command() -> list[str]:
    if missing := missing_java():
        raise NotAvailable(missing)
    jars = fetch_jars()
    class_path = ":".join(str(jar) for pattern in _JARS for jar in sorted(jars.glob(pattern)))
    return [str(find_java()), "-cp", class_path, str(_SOURCE)]
