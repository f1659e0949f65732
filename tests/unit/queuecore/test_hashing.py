"""Golden vectors: what ThingsBoard's Java computes for the same entities, and published FNV-1a values."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.errors import ConfigurationError
from queuecore.hashing import DEFAULT_HASH, HASH_FUNCTIONS, Entity, fnv1a, hash_function, partition_of
from queuecore.topics import SYSTEM_TENANT

FUNCTIONS = ("murmur3_128", "murmur3_32", "sha256")
PARTITION_COUNTS = (10, 12, 30)

# entity, then per function: the hash and the partition of 10, of 12 and of 30
VECTORS: list[tuple[Entity, tuple[tuple[int, int, int, int], ...]]] = [
    (SYSTEM_TENANT, ((753439043, 3, 11, 23), (-1198738292, 2, 8, 2), (-1155030795, 5, 3, 15))),
    (UUID(int=0), ((2108233942, 2, 10, 22), (-2127245832, 2, 0, 12), (-16234697, 7, 5, 17))),
    (UUID(int=2**128 - 1), ((-1550170394, 4, 2, 14), (-451333010, 0, 2, 20), (-1801075110, 0, 6, 0))),
    (UUID(int=1), ((-809152526, 6, 2, 26), (223774489, 9, 1, 19), (-1626065763, 3, 3, 3))),
    (
        UUID("784f394c-42b6-435a-983c-b7beff2784f9"),
        ((-1365553268, 8, 8, 8), (1278706996, 6, 4, 16), (-946518300, 0, 0, 0)),
    ),
    (
        UUID("a8098c1a-f86e-11da-bd1a-00112444be1e"),
        ((-1566444232, 2, 4, 22), (1149534015, 5, 3, 15), (-1050216725, 5, 5, 5)),
    ),
    (
        UUID("6fa459ea-ee8a-3ca4-894e-db77e160355e"),
        ((221977444, 4, 4, 4), (923785448, 8, 8, 8), (855447263, 3, 11, 23)),
    ),
    (
        UUID("16fd2706-8baf-433b-82eb-8c7fada847da"),
        ((1478638204, 4, 4, 4), (-1894290074, 4, 2, 14), (-998881209, 9, 9, 9)),
    ),
    (
        UUID("123e4567-e89b-12d3-a456-426614174000"),
        ((-1941563177, 7, 5, 17), (1011583186, 6, 10, 16), (-2146782692, 2, 8, 2)),
    ),
    ("", ((0, 0, 0, 0), (0, 0, 0, 0), (1120186595, 5, 11, 5))),
    ("a", ((-161908599, 9, 3, 9), (1009084850, 0, 2, 20), (310482890, 0, 2, 20))),
    ("tenant-1", ((-901961329, 9, 1, 19), (63691397, 7, 5, 17), (-1280600566, 6, 10, 16))),
    ("Main", ((851896785, 5, 9, 15), (460120899, 9, 3, 9), (-481590805, 5, 1, 25))),
    ("tb_core", ((560502426, 6, 6, 6), (-935916844, 4, 4, 4), (1056794844, 4, 0, 24))),
]
CASES = [
    pytest.param(name, entity, *numbers, id=f"{name}-{entity}")
    for entity, by_function in VECTORS
    for name, numbers in zip(FUNCTIONS, by_function, strict=True)
]


@pytest.mark.parametrize(("name", "entity", "expected", "of_10", "of_12", "of_30"), CASES)
def test_hashes_are_those_of_thingsboard(
    name: str, entity: Entity, expected: int, of_10: int, of_12: int, of_30: int
) -> None:
    function = hash_function(name)
    assert function(entity) == expected
    assert [partition_of(entity, count, function) for count in PARTITION_COUNTS] == [of_10, of_12, of_30]


@pytest.mark.parametrize("name", FUNCTIONS)
@given(text=st.text())
def test_a_string_is_hashed_as_its_utf8_bytes(name: str, text: str) -> None:
    assert hash_function(name)(text) == hash_function(name)(text.encode())


@pytest.mark.parametrize(("text", "expected"), [("", 2166136261), ("a", 3826002220), ("foobar", 3214735720)])
def test_fnv1a_is_the_published_function(text: str, expected: int) -> None:
    assert fnv1a(text) == fnv1a(text.encode()) == expected


def test_fnv1a_reads_a_uuid_big_endian() -> None:
    entity = UUID("784f394c-42b6-435a-983c-b7beff2784f9")
    assert fnv1a(entity) == fnv1a(entity.bytes)


def test_the_smallest_hash_has_a_partition_too() -> None:
    assert [partition_of("any", count, lambda _: -(2**31)) for count in PARTITION_COUNTS] == [8, 8, 8]


@pytest.mark.parametrize("name", HASH_FUNCTIONS)
@given(entity=st.one_of(st.uuids(), st.binary(), st.text()), partitions=st.integers(1, 1_000))
def test_every_entity_has_a_partition_there_is(name: str, entity: Entity, partitions: int) -> None:
    assert 0 <= partition_of(entity, partitions, hash_function(name)) < partitions


@pytest.mark.parametrize("partitions", [0, -3])
def test_without_partitions_there_is_none_to_go_to(partitions: int) -> None:
    with pytest.raises(ConfigurationError, match=f"there are {partitions} partitions"):
        partition_of("a", partitions)


def test_an_unknown_function_is_refused_with_the_known_ones() -> None:
    assert DEFAULT_HASH in HASH_FUNCTIONS
    with pytest.raises(ConfigurationError, match=r"'md5'.*murmur3_128, murmur3_32, sha256, fnv1a"):
        hash_function("md5")
