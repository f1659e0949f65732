"""Make summaries of minutes, hours and days anew from the events that are kept."""

from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queueapi.actions.actor import SYSTEM
from queueapi.actions.pipeline import start_backfill
from queueapi.errors import ActionError
from queueapi.selectors.backfill_plans import BackfillPlan, plan_backfill


class Command(BaseCommand):
    help = f"{__doc__} It is an operation: the Spark worker does it, day by day, and the console shows how far it is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--from", dest="first", type=date.fromisoformat, required=True, help="first day, YYYY-MM-DD"
        )
        parser.add_argument("--to", dest="last", type=date.fromisoformat, help="last day (default: the first)")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        first, last = options["first"], options["last"] or options["first"]
        try:
            if options["dry_run"]:
                self._show(plan_backfill(first, last))
                return
            operation = start_backfill(SYSTEM, first, last)
        except ActionError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Started operation {operation.id}: {operation.summary}")

    def _show(self, plan: BackfillPlan) -> None:
        self.stdout.write(plan.summary)
        for change in plan.changes:
            self.stdout.write(f"  {change.what}: {change.after}")
        for warning in plan.warnings:
            self.stdout.write(self.style.WARNING(f"  {warning}"))
