"""Which database the cluster's tables are in."""

from typing import Any, Final

from django.db import connections
from django.db.models import Model

APP: Final = "cluster"


def cluster_database() -> str:
    """The alias: one of its own where there is one."""
    return APP if APP in connections.databases else "default"


class ClusterRouter:
    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:  # noqa: ARG002
        is_ours = model._meta.app_label == APP  # noqa: SLF001 - Django's documented way to ask a model
        return cluster_database() if is_ours else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:  # noqa: ARG002
        return db == (cluster_database() if app_label == APP else "default")
