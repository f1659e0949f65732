"""Make what is missing and change what differs, as a document of `export_configuration` says: all of it, or nothing."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queueapi.actions.actor import SYSTEM
from queueapi.actions.configuration import ConfigurationPlan, import_configuration, plan_configuration
from queueapi.config import config
from queueapi.configuration.yaml_lines import Lines
from queueapi.configuration.yaml_reading import read_yaml
from queueapi.errors import InvalidInput
from queuecore.errors import QueueError


class Command(BaseCommand):
    help = f"{__doc__} Nothing is deleted, and what the document leaves out stays."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="YAML or JSON; '-' reads it from standard input")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")

    def handle(self, *args: Any, **options: Any) -> None:
        act = plan_configuration if options["dry_run"] else import_configuration
        try:
            text = _text(options["file"])
            plan = act(SYSTEM, read_yaml(text, config().rest.max_json_depth), Lines(text))
        except InvalidInput as error:
            told = error.fields.get("fields") or {}
            problems = [f"{place}: {why}" for place, reasons in told.items() for why in reasons]
            raise CommandError("\n".join(problems or [error.message]), returncode=2) from error
        except QueueError as error:
            raise CommandError(error.message, returncode=2) from error
        self._tell(plan)
        if plan.problems:
            problems = [f"{problem.place}: {problem.told}" for problem in plan.problems]
            raise CommandError("\n".join(problems), returncode=2)

    def _tell(self, plan: ConfigurationPlan) -> None:
        for change in plan.changes:
            before, after = (json.dumps(value, ensure_ascii=False) for value in (change.before, change.after))
            self.stdout.write(f"{change.what}: {before} -> {after}")
        for warning in plan.warnings:
            self.stdout.write(f"mind: {warning}")
        self.stdout.write(plan.summary)


def _text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}", returncode=2) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8, at byte {error.start}", returncode=2) from error
