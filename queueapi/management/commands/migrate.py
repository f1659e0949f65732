"""Django's `migrate`, for all of an installation's databases."""

from typing import Any

from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import DEFAULT_DB_ALIAS

from queueapi.cluster.databases import APP, cluster_database


class Command(MigrateCommand):
    """Without `--database` the cluster's own is migrated too, where it has one: by the migrations of its own tables. To
    go through all the others, which change nothing there, takes longer than to do them."""

    def handle(self, *args: Any, **options: Any) -> None:
        asked, app, own = options["database"], options["app_label"], cluster_database()
        of_its_own = {"database": own, "app_label": app or APP, "run_syncdb": False}
        if asked == own != DEFAULT_DB_ALIAS:
            super().handle(*args, **options | of_its_own)
            return
        super().handle(*args, **options)
        if asked == DEFAULT_DB_ALIAS != own and app in (None, APP):
            super().handle(*args, **options | of_its_own)
