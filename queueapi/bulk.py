"""Many rows by one statement, where making an object of each would take too long."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models

# A field's value as a value of the database.
Adapter = Callable[[Any], Any]


def insert_rows(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, all with the same columns; what they leave out has its field's default. IntegrityError where one
    breaks a rule: call it in a transaction, to have all of them or none."""
    if not rows:
        return
    fields = [field for field in _fields(model) if field.attname in rows[0] or field.has_default()]
    quote = connections[DEFAULT_DB_ALIAS].ops.quote_name
    names = ", ".join(quote(str(field.column)) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    statement = f"insert into {table_of(model)} ({names}) values ({marks})"  # noqa: S608
    execute_many(statement, list(zip(*(_column(field, rows) for field in fields), strict=True)))


def execute_many(statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement once for each row of values, which are the database's own."""
    if rows:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.executemany(statement, rows)


def table_of(model: type[models.Model]) -> str:
    """Its name, as a statement has it."""
    return connections[DEFAULT_DB_ALIAS].ops.quote_name(model._meta.db_table)  # noqa: SLF001 - Django's documented way


def adapter_of(model: type[models.Model], name: str) -> Adapter:
    """What makes values of this field the database's own."""
    adapt = _adapter(next(field for field in _fields(model) if field.attname == name))
    return adapt or _unchanged


def _fields(model: type[models.Model]) -> "Sequence[models.Field[Any, Any]]":
    return model._meta.concrete_fields  # noqa: SLF001 - Django's documented way to ask a model


def _column(field: "models.Field[Any, Any]", rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """One column of all rows."""
    name, adapt = field.attname, _adapter(field)
    if name not in rows[0]:
        default = field.get_default()
        return [default if default is None or adapt is None else adapt(default)] * len(rows)
    if adapt is None:
        return [row[name] for row in rows]
    return [None if (value := row[name]) is None else adapt(value) for row in rows]


def _adapter(field: "models.Field[Any, Any]") -> Adapter | None:
    """None where the values are the database's own already."""
    database = connections[DEFAULT_DB_ALIAS]
    kind = field.target_field if isinstance(field, models.ForeignKey) else field
    if isinstance(kind, models.UUIDField):
        return None if database.features.has_native_uuid_field else _hex
    if isinstance(kind, models.DateTimeField):
        return _utc_text if database.vendor == "sqlite" else None
    if isinstance(kind, models.JSONField | models.BinaryField):
        return lambda value: kind.get_db_prep_save(value, database)
    return None


def _hex(value: UUID) -> str:
    return value.hex


def _utc_text(value: datetime) -> str:
    """As Django writes it, and quicker for times that are in UTC already."""
    return str((value if value.tzinfo is UTC else value.astimezone(UTC)).replace(tzinfo=None))


def _unchanged(value: Any) -> Any:
    return value
