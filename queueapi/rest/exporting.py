"""Answers of any length, as files: written as they are read, so that the server holds some hundred rows of them."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder

_BATCH: Final = 500
# What a spreadsheet would take for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

Rows = Sequence[Mapping[str, Any]]


def batches(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """All rows, some hundred at a time."""
    found = rows.iterator(chunk_size=_BATCH)
    while batch := list(islice(found, _BATCH)):
        yield batch


def json_lines(batches: Iterator[Rows]) -> Iterator[bytes]:
    for rows in batches:
        yield "".join(f"{_json(row)}\n" for row in rows).encode()


def csv_lines(batches: Iterator[Rows]) -> Iterator[bytes]:
    """The first line names the columns; nothing at all where there are no rows."""
    is_first = True
    for rows in batches:
        text = io.StringIO()
        writer = csv.writer(text)
        if is_first:
            writer.writerow(rows[0])
            is_first = False
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
        yield text.getvalue().encode()


def streamed(request: Request | HttpRequest, chunks: Iterator[bytes], kind: str, name: str) -> StreamingHttpResponse:
    """A file of this kind and name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(flowing(request, chunks), content_type=kind, headers=headers)


def flowing(request: Request | HttpRequest, chunks: Iterator[bytes]) -> Iterator[bytes] | AsyncIterator[bytes]:
    """The same for whichever server: an asynchronous one would gather what an ordinary iterator gives before it sends
    any of it."""
    return _asynchronous(chunks) if hasattr(request, "scope") else chunks


async def _asynchronous(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = sync_to_async(_following)
    while chunk := await following(chunks):
        yield chunk


def _following(chunks: Iterator[bytes]) -> bytes:
    return next(chunks, b"")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = _json(value) if isinstance(value, dict | list) else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _json(value: Any) -> str:
    return json.dumps(value, cls=JSONEncoder, ensure_ascii=False)
