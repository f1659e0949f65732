"""Django's `migrate`, for all of an installation's databases."""

from typing import Any

from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import DEFAULT_DB_ALIAS

from queueapi.cluster.databases import APP, cluster_database


class Command(MigrateCommand):
    """Without `--database` the cluster's own is migrated too, where it has one."""

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        database = cluster_database()
        if options["database"] == DEFAULT_DB_ALIAS != database and options["app_label"] in (None, APP):
            super().handle(*args, **options | {"database": database})
