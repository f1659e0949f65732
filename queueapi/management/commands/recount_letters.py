"""Compare the counters of dead letters with the letters themselves."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from queueapi.actions.letter_recount import recount_letters
from queueapi.management.tables import table


class Command(BaseCommand):
    help = f"{__doc__} Exit code 1 where some are wrong and stay so. Safe while the system runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--mend", action="store_true", help="set them right")

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = recount_letters(mend=options["mend"])
        if not wrong:
            self.stdout.write("All counters are right.")
            return
        rows = [(str(miss.group_id), miss.counter, str(miss.told), str(miss.found)) for miss in wrong]
        self.stdout.write(table(("GROUP", "COUNTER", "SAID", "FOUND"), rows))
        if options["mend"]:
            self.stdout.write("They are right now.")
        else:
            raise SystemExit(1)
