"""Counting rows that have to be read anyway."""

from typing import Any

from django.db.models import Func
from django.db.models.sql.compiler import SQLCompiler


class AsRead(Func):
    """A column to count by where each row is looked at. SQLite would walk an index of that column, and look up
    each row in turn: that takes several times as long as reading them as they lie, and sorting
    what is counted."""

    arity = 1
    template = "%(expressions)s"

    def as_sqlite(self, compiler: SQLCompiler, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template="+%(expressions)s", **extra)
