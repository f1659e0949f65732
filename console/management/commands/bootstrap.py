"""Prepare an installation: database, administrator, topics."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.secrets import kept_secret
from queueapi.bootstrap import ADMINISTRATOR, bootstrap
from queueapi.config import config
from queuecore.errors import QueueError


class Command(BaseCommand):
    help = __doc__
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        password_file = config().data / "admin-password"
        try:
            bootstrap(kept_secret(password_file, length=12))
        except QueueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"ready; {ADMINISTRATOR}'s first password is in {password_file}")
