"""Records as JSON, straight from the files, as far as they can be read."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from queuecore.errors import ProviderUnavailable
from queuecore.messages import Key, Record
from queuecore.providers.log.batch import NO_TRANSACTION, decode_records
from queuecore.providers.log.files import partition_dir, segment_bases, segment_path
from queuecore.providers.log.page import PageView
from queuecore.providers.log.reader import Outcome
from queuecore.providers.log.reports import describe_outcome
from queuecore.providers.log.salvage import Damage, FoundBatch, walk_segment
from queuecore.topics import ProviderPartition

Json = dict[str, Any]

_WHITE_SPACE = str.maketrans("", "", "\t\r\n")


def dump_records(root: Path, place: ProviderPartition, outcome: Outcome, first: int = 0) -> Iterator[Json | Damage]:
    """Every stored record from that offset on, whatever became of its transaction, and where something is damaged.
    ProviderUnavailable where the partition has no page, or is cleaned meanwhile."""
    directory = partition_dir(root, place)
    try:
        page = PageView.read(directory)
    except FileNotFoundError:
        raise ProviderUnavailable(f"{place} has no page: {directory / 'state'} is missing; restore it") from None
    offset = max(first, page.beginning)
    bases = segment_bases(directory)
    for base, following in zip(bases, [*bases[1:], page.end], strict=True):
        if following <= offset:
            continue
        path = segment_path(directory, base)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            what = f"{path} was removed by cleaning meanwhile; go on from offset {offset}"
            raise ProviderUnavailable(what, offset=offset) from None
        for found in _from_offset(walk_segment(path, base, raw), offset):
            if isinstance(found, Damage):
                yield found
                continue
            transaction = _transaction(found, outcome)
            for record in decode_records(found.header, raw, found.position, *place):
                if offset <= record.offset < page.end:
                    yield as_json(record) | transaction
            offset = max(offset, found.header.end_offset)
            if offset >= page.end:
                return


def _from_offset(walk: Iterator[FoundBatch | Damage], offset: int) -> Iterator[FoundBatch | Damage]:
    """Without what is all below the offset."""
    damage: list[Damage] = []
    for found in walk:
        if isinstance(found, Damage):
            damage.append(found)
        elif found.header.base_offset <= offset:
            damage.clear()
            if found.header.end_offset > offset:
                yield found
        else:
            yield from damage
            damage.clear()
            yield found
    yield from damage


def _transaction(found: FoundBatch, outcome: Outcome) -> Json:
    number = found.header.transaction
    if number == NO_TRANSACTION:
        return {}
    return {"transaction": {"number": number, "outcome": describe_outcome(outcome(number))}}


def as_json(record: Record) -> Json:
    """A string stands for bytes that are readable text, an object with one member says what else they are."""
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _key(record.key),
        "headers": {name: _text(value) for name, value in record.headers.items()},
        "data": _text(record.data),
    }


def _key(key: Key) -> str | dict[str, str] | None:
    if key is None:
        return None
    return {"uuid": str(key)} if isinstance(key, UUID) else _text(key)


def _text(value: bytes) -> str | dict[str, str]:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if text.translate(_WHITE_SPACE).isprintable():
        return text
    return {"base64": base64.b64encode(value).decode()}
