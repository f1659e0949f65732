"""The five submit strategies."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Protocol, TypeVar

from queuecore.errors import ConfigurationError
from queuecore.messages import TENANT_ID, Record

T = TypeVar("T")

DEFAULT_BATCH_SIZE: Final = 1_000


class SubmitStrategyType(StrEnum):
    """In which order the messages of a pack are handed to handlers.

    BURST                     all at once, in no promised order
    BATCH                     as many at once as a batch holds; the next batch when this one is done
    SEQUENTIAL                one after the other
    SEQUENTIAL_BY_ORIGINATOR  those of one entity one after the other
    SEQUENTIAL_BY_TENANT      those of one tenant one after the other
    """

    BURST = "BURST"
    BATCH = "BATCH"
    SEQUENTIAL = "SEQUENTIAL"
    SEQUENTIAL_BY_ORIGINATOR = "SEQUENTIAL_BY_ORIGINATOR"
    SEQUENTIAL_BY_TENANT = "SEQUENTIAL_BY_TENANT"


class SubmitStrategy(Protocol):
    """Divides messages into lanes, and lanes into stages. The messages of a lane are handled one after the other, lanes
    side by side; a stage begins when the one before it is done and holds nothing back."""

    # Whether a message that waits to be tried again holds back everything behind it, not only its own lane.
    holds_all: ClassVar[bool]

    def lane_of(self, record: Record) -> Hashable | None:
        """Which lane a message belongs to; None for one that is alone in its lane."""

    def stages(self, lanes: Sequence[list[T]]) -> list[Sequence[list[T]]]:
        """Lanes that may be worked on together, stage by stage."""


@dataclass(frozen=True, slots=True)
class Burst:
    holds_all: ClassVar[bool] = False

    def lane_of(self, record: Record) -> Hashable | None:  # noqa: ARG002
        return None

    def stages(self, lanes: Sequence[list[T]]) -> list[Sequence[list[T]]]:
        return [lanes]


@dataclass(frozen=True, slots=True)
class Batch:
    size: int = DEFAULT_BATCH_SIZE
    holds_all: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"a batch of {self.size} messages cannot be submitted; use a batch size from 1 on")

    def lane_of(self, record: Record) -> Hashable | None:  # noqa: ARG002
        return None

    def stages(self, lanes: Sequence[list[T]]) -> list[Sequence[list[T]]]:
        return [lanes[start : start + self.size] for start in range(0, len(lanes), self.size)]


@dataclass(frozen=True, slots=True)
class Sequential:
    holds_all: ClassVar[bool] = True

    def lane_of(self, record: Record) -> Hashable | None:  # noqa: ARG002
        return _THE_ONLY

    def stages(self, lanes: Sequence[list[T]]) -> list[Sequence[list[T]]]:
        return [lanes]


@dataclass(frozen=True, slots=True)
class SequentialByOriginator:
    """The originator is the message's key. One without a key has no originator, and nothing to wait for."""

    holds_all: ClassVar[bool] = False

    def lane_of(self, record: Record) -> Hashable | None:
        return record.key

    def stages(self, lanes: Sequence[list[T]]) -> list[Sequence[list[T]]]:
        return [lanes]


@dataclass(frozen=True, slots=True)
class SequentialByTenant:
    """Messages that name no tenant are the system's, in a lane of their own."""

    holds_all: ClassVar[bool] = False

    def lane_of(self, record: Record) -> Hashable | None:
        return record.headers.get(TENANT_ID, b"")

    def stages(self, lanes: Sequence[list[T]]) -> list[Sequence[list[T]]]:
        return [lanes]


_THE_ONLY: Final = "the only lane"

_OTHERS: Final[dict[SubmitStrategyType, SubmitStrategy]] = {
    SubmitStrategyType.BURST: Burst(),
    SubmitStrategyType.SEQUENTIAL: Sequential(),
    SubmitStrategyType.SEQUENTIAL_BY_ORIGINATOR: SequentialByOriginator(),
    SubmitStrategyType.SEQUENTIAL_BY_TENANT: SequentialByTenant(),
}


def submit_strategy(name: SubmitStrategyType | str, batch_size: int = DEFAULT_BATCH_SIZE) -> SubmitStrategy:
    """The one of that name. ConfigurationError lists the names there are."""
    try:
        kind = SubmitStrategyType(name)
    except ValueError:
        names = ", ".join(SubmitStrategyType)
        raise ConfigurationError(f"there is no submit strategy {name!r}; choose one of {names}") from None
    return Batch(batch_size) if kind is SubmitStrategyType.BATCH else _OTHERS[kind]
