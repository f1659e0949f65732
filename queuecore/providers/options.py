"""How producers and consumers behave: the same words mean the same on every provider."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from queuecore.errors import ConfigurationError

Acks = Literal["0", "1", "all"]
Compression = Literal["none", "lz4", "zstd"]
Isolation = Literal["read_committed", "read_uncommitted"]
OffsetReset = Literal["earliest", "latest"]
Strategy = Literal["range", "round_robin", "sticky"]


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """A message's size is that of its key, headers and data; what waits is measured by its data, roughly.

    acks              when a send is answered: `0` once buffered, `1` once the provider has it, `all` once it is safe
    retries           how often a failed write is tried again before its sends fail
    batch_size        bytes that end the lingering at once
    linger_ms         how long to wait for more to send together
    buffer_memory     bytes of data that may wait; then `send` does, for at most max_block_ms
    max_request_size  the largest message
    compression       of what is stored
    """

    acks: Acks = "all"
    retries: int = 1
    batch_size: int = 16_384
    linger_ms: int = 0
    buffer_memory: int = 32 * 1024 * 1024
    max_request_size: int = 1024 * 1024
    max_block_ms: int = 60_000
    compression: Compression = "none"

    def __post_init__(self) -> None:
        check_choices(self, acks=Acks, compression=Compression)
        _at_least(self, retries=0, batch_size=1, linger_ms=0, max_request_size=1, max_block_ms=0)
        _at_least(self, buffer_memory=self.max_request_size)


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """
    max_poll_records           the most one poll gives
    max_partition_fetch_bytes  how much of one partition a poll gives; one larger record is given alone
    auto_offset_reset          where a group begins that has committed nothing
    session_timeout_ms         silence after which a member counts as dead
    isolation                  whether records of transactions that are not committed are given out
    strategy                   how a group divides its partitions
    """

    max_poll_records: int = 8_192
    max_partition_fetch_bytes: int = 16 * 1024 * 1024
    auto_offset_reset: OffsetReset = "earliest"
    session_timeout_ms: int = 10_000
    isolation: Isolation = "read_committed"
    strategy: Strategy = "sticky"

    def __post_init__(self) -> None:
        check_choices(self, auto_offset_reset=OffsetReset, isolation=Isolation, strategy=Strategy)
        _at_least(self, max_poll_records=1, max_partition_fetch_bytes=1, session_timeout_ms=1)


def check_choices(options: object, **literals: Any) -> None:
    """ConfigurationError, with the choices, where an attribute is none of its Literal's."""
    for name, literal in literals.items():
        if (value := getattr(options, name)) not in get_args(literal):
            raise ConfigurationError(f"{name} is {value!r}; choose one of {', '.join(get_args(literal))}")


def _at_least(options: object, **least: int) -> None:
    for name, limit in least.items():
        if (value := getattr(options, name)) < limit:
            raise ConfigurationError(f"{name} is {value}; {limit} is the least")


DEFAULT_PRODUCING = ProducerOptions()
DEFAULT_CONSUMING = ConsumerOptions()
