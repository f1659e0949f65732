"""What another number of partitions, or another hash function, would make of the same messages."""

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict

from queuecore.hashing import HASH_FUNCTIONS, Entity

# Other numbers of partitions that are looked at, in times of the present one.
_FACTORS: Final = (0.5, 1, 2, 4)


class WhatIf(TypedDict):
    """skew   the fullest partition's messages, of what each would have if all had the same
    moved  what part of the messages would go to another partition, 0 to 1
    """

    partitions: int
    hash_function: str
    skew: float
    moved: float


def what_if(messages: Mapping[Entity, int], partitions: int, hash_function: str) -> list[WhatIf]:
    """For each function and number of partitions, the present ones among them, so that there is what to compare with:
    entities that were seen are seldom all there are."""
    if not messages:
        return []
    hashes = {name: [abs(function(entity)) for entity in messages] for name, function in HASH_FUNCTIONS.items()}
    present = [value % partitions for value in hashes[hash_function]]
    counts = list(messages.values())
    return [
        _outcome(number, name, [value % number for value in hashes[name]], present, counts)
        for name in HASH_FUNCTIONS
        for number in sorted({max(1, int(partitions * factor)) for factor in _FACTORS})
    ]


def skew(messages: Iterable[int], partitions: int) -> float:
    """1 where all have the same, and where there are none."""
    counts = list(messages)
    return max(counts) * partitions / sum(counts) if any(counts) else 1.0


def _outcome(number: int, name: str, places: list[int], present: list[int], counts: list[int]) -> WhatIf:
    full = [0] * number
    for place, count in zip(places, counts, strict=True):
        full[place] += count
    moved = sum(count for place, old, count in zip(places, present, counts, strict=True) if place != old)
    return WhatIf(
        partitions=number, hash_function=name, skew=round(skew(full, number), 4), moved=round(moved / sum(counts), 4)
    )
