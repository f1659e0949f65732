"""Ids in one spelling. A header is anybody's bytes, and an id can be written in many ways; Spark groups texts, and the
database compares what they mean."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from queuecore.metrics import OTHER

# Tenant ids of messages that name none, or what is none, and of those beyond the limit of a sample.
NOBODY: Final = frozenset(("", OTHER))


@lru_cache(maxsize=100_000)
def spelt_id(text: str) -> str | None:
    """None where it is no id."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def spelt(name: str, values: pa.Array) -> pa.Array:
    """The values of that column as they are stored. What should be a queue's id and is none stays, to be refused; what
    should be a tenant's is nobody's: who publishes a message must not make a whole sample unusable."""
    if (spell := _SPELLINGS.get(name)) is None:
        return values
    if pa.types.is_dictionary(values.type):
        # Two spellings of one id become one text.
        found = spelt(name, values.dictionary).dictionary_encode()
        return pa.DictionaryArray.from_arrays(found.indices.take(values.indices), found.dictionary)
    different = pc.unique(values)
    texts = different.to_pylist()
    told = [spell(text) for text in texts]
    return values if told == texts else pa.array(told, pa.string()).take(pc.index_in(values, value_set=different))


def _queue_id(text: str) -> str:
    return spelt_id(text) or text


def _tenant_id(text: str) -> str:
    return text if text in NOBODY else spelt_id(text) or ""


_SPELLINGS: Final[dict[str, Callable[[str], str]]] = {"queue_id": _queue_id, "tenant_id": _tenant_id}
