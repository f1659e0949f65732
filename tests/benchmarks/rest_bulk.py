"""Many rows at once: by objects where they are few, by statements where they are not."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

_AT_ONCE: Final = 5_000


def save(model: Any, rows: Iterable[dict[str, Any]]) -> None:
    """Few enough for an object of each."""
    model.objects.bulk_create((model(**row) for row in rows), batch_size=_AT_ONCE)


def insert(model: Any, rows: Iterable[dict[str, Any]]) -> None:
    """Without an object of each."""
    from django.db import transaction

    from queueapi.bulk import insert_rows

    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        with transaction.atomic():
            insert_rows(model, some)


def multiply(
    model: Any, count: int, block: int, row: Callable[[int], dict[str, Any]], changed: Mapping[str, str]
) -> None:
    """As many rows as `count`: a block of them one by one, and the others from those by one statement each. `changed`
    says what is other in a copy, in SQLite's words: `{ahead}` stands for how many rows are before its block, `{number}`
    for the row's number."""
    from django.db import connection

    from queueapi.bulk import table_of

    table = table_of(model)
    with connection.cursor() as cursor:
        cursor.execute(f"select coalesce(max(rowid), 0) + 1 from {table}")  # noqa: S608
        [first] = cursor.fetchone()
    insert(model, (row(number) for number in range(min(count, block))))
    names = [field.column for field in model._meta.concrete_fields if not _is_counted(field)]
    for ahead in range(block, count, block):
        told = {"ahead": ahead, "number": f"(rowid - {first} + {ahead})"}
        values = ", ".join(changed.get(name, f'"{name}"').format(**told) for name in names)
        columns = ", ".join(f'"{name}"' for name in names)
        last = first + min(block, count - ahead) - 1
        with connection.cursor() as cursor:
            chosen = f"select {values} from {table} where rowid between %s and %s"  # noqa: S608
            cursor.execute(f"insert into {table} ({columns}) {chosen}", [first, last])


def earlier(column: str, step_ms: int) -> str:
    """That time, as many steps earlier as there are rows before the block. As Django writes times."""
    back = f"'-' || ({{ahead}} * {step_ms} / 1000.0) || ' seconds'"
    return f"strftime('%%Y-%%m-%%d %%H:%%M:%%f', \"{column}\", {back}) || '000'"


def quickly() -> None:
    """From now on nothing is kept for a crash: whoever is killed begins anew."""
    from django.db import connections

    for connection in connections.all():
        with connection.cursor() as cursor:
            for setting in ("journal_mode = memory", "synchronous = off", "cache_size = -400000"):
                cursor.execute(f"pragma {setting}")


def as_usual() -> None:
    """The database knows how many rows there are, and is kept as an installation keeps it."""
    from django.db import connections

    for connection in connections.all():
        with connection.cursor() as cursor:
            cursor.execute("analyze")
            cursor.execute("pragma journal_mode = wal")
    connections.close_all()


def _is_counted(field: Any) -> bool:
    """Whether the database numbers it."""
    return bool(field.get_internal_type() in ("AutoField", "BigAutoField"))
