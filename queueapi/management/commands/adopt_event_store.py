"""Let the pipeline go on with another store of events: that of whichever installation runs it next."""

from typing import Any

from django.core.management.base import BaseCommand

from queueapi.actions.actor import SYSTEM
from queueapi.actions.pipeline import adopt_event_store


class Command(BaseCommand):
    help = f"{__doc__} For when the data folder was lost or moved. Stop the pipeline that used the database before."

    def handle(self, *args: Any, **options: Any) -> None:
        if adopt_event_store(SYSTEM):
            self.stdout.write("The store of the next run that finds something new is the database's from then on.")
        else:
            self.stdout.write("The database is no store's; there is nothing to do.")
