"""Comparing what somebody has seen with what is there, and changing it, with nobody in between."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import router, transaction
from django.db.models import Model


@contextmanager
def row_locked(row: Model) -> Iterator[None]:
    """A transaction in which nobody else changes it."""
    model = type(row)
    with transaction.atomic(using=router.db_for_write(model)):
        list(model._base_manager.select_for_update().filter(pk=row.pk).values_list("pk"))  # noqa: SLF001 - Django's
        yield
