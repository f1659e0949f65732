"""Look after the files of the `log` provider: what is in them, whether they are sound, the records themselves."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queueapi.config import config
from queueapi.management.log_report import as_json, describe, sections, summary
from queuecore.errors import QueueError
from queuecore.providers.log import LogProvider
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.dumping import dump_records
from queuecore.providers.log.inspection import inspect_partition
from queuecore.providers.log.outcomes import Outcomes
from queuecore.providers.log.reports import PartitionReport
from queuecore.providers.log.salvage import Damage
from queuecore.providers.log.snapshot import catalog_snapshot
from queuecore.topics import ProviderPartition


class Command(BaseCommand):
    help = f"{__doc__} The log may be in use, damaged, or on a read-only disk: only `clean` opens anything for writing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for action, text in (
            ("inspect", "segments, indexes, producers, transactions, page and damage of each partition"),
            ("verify", "read every byte and say where something is damaged; the exit code is 1 then"),
            ("dump", "the records, one JSON object a line"),
            ("clean", "remove and compact now what would be within the next minutes, in all topics"),
        ):
            sub = actions.add_parser(action, help=text, description=text)
            sub.add_argument("--root", type=Path, help="the log's folder (default: the installation's)")
            if action == "clean":
                continue
            sub.add_argument("topic")
            sub.add_argument("--partition", type=int, help="only this one (default: all)")
            if action == "dump":
                sub.add_argument("--from", type=int, default=0, dest="first", help="the first offset (default: 0)")
                sub.add_argument("--max", type=int, help="no more than so many records")
            else:
                sub.add_argument("--json", action="store_true", help="one JSON document instead of tables")

    def handle(self, *args: Any, **options: Any) -> None:
        actions: dict[str, Callable[[Any], int]] = {
            "inspect": self._inspect, "verify": self._verify, "dump": self._dump, "clean": self._clean,
        }  # fmt: skip
        options["root"] = options["root"] or config().data / "log"
        try:
            damaged = actions[options["action"]](options)
        except QueueError as error:
            raise CommandError(str(error), returncode=2) from error
        if damaged:
            raise CommandError(f"topic {options['topic']!r} is damaged in {damaged} place(s)", returncode=1)

    def _inspect(self, options: Any) -> int:
        """Says what there is; that something is damaged is not its failure."""
        reports = _reports(options)
        if options["json"]:
            self._write_json(reports)
        else:
            self.stdout.write("\n\n\n".join("\n\n".join(sections(report)) for report in reports))
        return 0

    def _verify(self, options: Any) -> int:
        reports = _reports(options)
        if options["json"]:
            self._write_json(reports)
        else:
            for report in reports:
                self.stdout.write("\n".join([*map(describe, report.damage), *report.remarks, summary(report)]))
        return sum(len(report.damage) for report in reports)

    def _dump(self, options: Any) -> int:
        damaged = shown = 0
        for found in _records(options):
            if options["max"] is not None and shown >= options["max"]:
                break
            if isinstance(found, Damage):
                damaged += 1
                self.stderr.write(describe(found))
            else:
                shown += 1
                self.stdout.write(json.dumps(found, ensure_ascii=False))
        return damaged

    def _clean(self, options: Any) -> int:
        with catalog_snapshot(options["root"]):
            pass  # there is a log, and its catalog is sound
        with closing(LogProvider(options["root"])) as provider:
            provider.admin().clean()
        return 0

    def _write_json(self, reports: list[PartitionReport]) -> None:
        self.stdout.write(json.dumps([as_json(report) for report in reports], indent=2))


@contextmanager
def _opened(options: Any) -> Iterator[tuple[Path, list[ProviderPartition], Outcomes]]:
    root = options["root"]
    with catalog_snapshot(root) as database:
        catalog = Catalog(database)
        places = catalog.partitions_of(options["topic"])
        if options["partition"] is not None:
            places = [ProviderPartition(options["topic"], options["partition"])]
            catalog.topic_of(places[0])
        yield root, places, Outcomes(database)


def _reports(options: Any) -> list[PartitionReport]:
    with _opened(options) as (root, places, outcome):
        return [inspect_partition(root, place, outcome) for place in places]


def _records(options: Any) -> Iterator[dict[str, Any] | Damage]:
    with _opened(options) as (root, places, outcome):
        for place in places:
            yield from dump_records(root, place, outcome, options["first"])
