"""What Kafka's own `kafka-consumer-groups` says of groups."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from queuecore.testing.services import KafkaService
from queuecore.testing.services.kafka import java_command
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import ProviderPartition

_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_NUMBER = r"(?P<{}>\d+|-)"
_ROW = re.compile(
    r"(?P<group>\S+) +(?P<topic>\S+) +(?P<partition>\d+) +"
    + " +".join(map(_NUMBER.format, ("committed", "end", "lag")))
    + r"(\s|$)"
)


class Told(NamedTuple):
    """Of one group in one partition. None is what the tool has a dash for: it was never committed."""

    committed: int | None
    end: int
    lag: int | None


Figures = dict[tuple[str, ProviderPartition], Told]


def told_by_kafka(kafka: KafkaService, groups: Iterable[str], folder: Path) -> Figures:
    """Of groups that are there: for the name of one that is not, the tool tells nothing at all."""
    chosen = [argument for name in groups for argument in ("--group", name)]
    command = java_command("-XX:TieredStopAtLevel=1", _TOOL, "--describe", *chosen)
    output = subprocess.run(
        [*command, "--bootstrap-server", kafka.bootstrap_servers],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        timeout=DEADLINE_S,
        check=True,
    ).stdout
    rows = filter(None, map(_ROW.match, output.splitlines()))
    return {
        (row["group"], ProviderPartition(row["topic"], int(row["partition"]))): Told(
            _number(row["committed"]), int(row["end"]), _number(row["lag"])
        )
        for row in rows
    }


def committed(figures: Figures) -> Figures:
    """Those with a commit."""
    return {key: told for key, told in figures.items() if told.committed is not None}


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)
