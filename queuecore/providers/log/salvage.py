"""Reading a segment that may be damaged: every batch that is whole, and where those are that are not."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from queuecore.errors import ForeignFile
from queuecore.providers.log.batch import MAGIC, BatchHeader, decode_records, is_whole, parse_header
from queuecore.providers.log.segment import HEAD_SIZE, check_head


class Damage(NamedTuple):
    """Bytes of a file that are not what was written. `position` is where the first batch that is harmed begins."""

    file: str
    position: int
    length: int
    problem: str

    @property
    def end(self) -> int:
        return self.position + self.length


class FoundBatch(NamedTuple):
    position: int
    header: BatchHeader


def walk_segment(path: Path, base: int, raw: bytes) -> Iterator[FoundBatch | Damage]:
    """Everything in the file, in order and without gaps: whole batches, and the bytes between them."""
    if (foreign := _wrong_head(path, raw)) is not None:
        yield foreign
    position, offset = HEAD_SIZE, base
    while position < len(raw):
        header = parse_header(raw, position)
        problem = _problem(header, raw, position, offset)
        if header is not None and problem is None:
            yield FoundBatch(position, header)
            position, offset = position + header.size, header.end_offset
        else:
            resumed = _next_batch(header, raw, position, offset)
            yield Damage(str(path), position, resumed - position, f"{problem}; {_lost(raw, resumed, offset)}")
            position = resumed


def _wrong_head(path: Path, raw: bytes) -> Damage | None:
    try:
        check_head(path, raw[:HEAD_SIZE])
    except ForeignFile as error:
        return Damage(str(path), 0, HEAD_SIZE, f"the file does not begin as a segment does: {error}")
    return None


def _problem(header: BatchHeader | None, raw: bytes, position: int, offset: int) -> str | None:
    if header is None:
        return "no batch begins here, or its header does not match its checksum"
    if not is_whole(header, raw, position):
        return "the batch does not match its checksum"
    if header.base_offset < offset:
        return f"a batch from offset {header.base_offset} is out of its place"
    try:
        decode_records(header, raw, position, "", 0)
    except Exception as error:  # whatever a decoder raises: the bytes are as they were written, and make no sense
        return f"the batch cannot be decoded ({error!r})"
    return None


def _next_batch(header: BatchHeader | None, raw: bytes, position: int, offset: int) -> int:
    """Where the next batch begins; the end of the file where there is none. A header that is sound says where. Else
    batches are searched for, and have to be whole: a message may hold bytes that look like one."""
    position += header.size if header is not None else 1
    if header is not None and parse_header(raw, position) is not None:
        return position
    while (position := raw.find(MAGIC, position)) >= 0:
        found = parse_header(raw, position)
        if found is not None and found.base_offset >= offset and is_whole(found, raw, position):
            return position
        position += 1
    return len(raw)


def _lost(raw: bytes, resumed: int, offset: int) -> str:
    following = parse_header(raw, resumed)
    if following is None:
        return f"no offset from {offset} on can be read in this file"
    if following.base_offset == offset:
        return "no offset is lost by it"
    return f"offsets {offset} to {following.base_offset - 1} cannot be read"
