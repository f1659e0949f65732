"""Say which service would consume which partition, and what would move."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queueapi.management.assignment_json import read_input
from queueapi.management.json_values import InvalidInput
from queuecore.cluster.assignment import ASSIGNORS, AssignmentPlan, Assignor, plan
from queuecore.errors import ConfigurationError
from queuecore.hashing import DEFAULT_HASH


class Command(BaseCommand):
    help = (
        f"{__doc__} Reads services, partitions and who has what now as JSON from standard input, and prints the plan "
        "as JSON; nothing is changed."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--assignor",
            help=f"{' or '.join(ASSIGNORS)} (default: what the input's 'assignor' says, else {Assignor.STICKY})",
        )
        parser.add_argument(
            "--hash", default=DEFAULT_HASH, help="hash function of the assignor thingsboard (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            given = read_input(sys.stdin.read())
            assignor = options["assignor"] if options["assignor"] is not None else given.assignor
            made = plan(
                Assignor.STICKY if assignor is None else assignor,
                given.services,
                given.partitions,
                given.current,
                hash_name=options["hash"],
            )
        except UnicodeDecodeError as error:
            raise CommandError(f"standard input is no UTF-8 text: {error}") from error
        except (InvalidInput, ConfigurationError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(_as_json(made)))


def _as_json(made: AssignmentPlan) -> dict[str, Any]:
    return {
        "assignment": made.assignment,
        "moves": [{"partition": move.partition, "from": move.source, "to": move.target} for move in made.moves],
        "unassigned": made.unassigned,
        "balance": {"before": asdict(made.before), "after": asdict(made.after)},
    }
