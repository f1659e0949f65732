"""A provider by its name. Each is imported only when it is asked for: the others' libraries need not be there."""

from pathlib import Path
from typing import Final, Literal, get_args

from queuecore.errors import ConfigurationError
from queuecore.providers.base import Provider
from queuecore.providers.options import (
    DEFAULT_CONSUMING,
    DEFAULT_KAFKA,
    DEFAULT_KAFKA_PRODUCING,
    DEFAULT_PRODUCING,
    ConsumerOptions,
    KafkaOptions,
    ProducerOptions,
)

ProviderName = Literal["in-memory", "log", "kafka"]
PROVIDER_NAMES: Final[tuple[ProviderName, ...]] = get_args(ProviderName)

# How many messages a partition in memory holds.
DEFAULT_CAPACITY: Final = 100_000


def open_provider(
    name: ProviderName,
    *,
    folder: Path | str | None = None,
    servers: str | None = None,
    kafka: KafkaOptions | None = None,
    producing: ProducerOptions | None = None,
    consuming: ConsumerOptions = DEFAULT_CONSUMING,
    capacity: int | None = None,
    when_full: Literal["block", "reject"] | None = None,
) -> Provider:
    """Open a provider; close it when done. Open it after a fork, never before.

    in-memory  in this process alone, gone with it; a partition holds `capacity` messages (100,000), and then senders
               wait (`when_full="block"`) or are refused with PartitionFull (`"reject"`)
    log        durable, under `folder`, shared by all processes of the machine that open it
    kafka      the cluster at `servers` (`host:port,host:port`), reached as the options `kafka` say; without
               `producing`, messages wait for 1 ms to be sent with others

    ConfigurationError for another name, and for a place that this provider does not want or misses.
    """
    _check_place(name, "folder", folder, wanted_by="log")
    _check_place(name, "servers", servers, wanted_by="kafka")
    if kafka is not None and name != "kafka" and name in PROVIDER_NAMES:
        raise ConfigurationError(f"the options `kafka` are not for the provider {name}; leave them out")
    if name != "in-memory" and name in PROVIDER_NAMES and (capacity, when_full) != (None, None):
        raise ConfigurationError(
            f"capacity and when_full are for the provider in-memory, not for {name}; leave them out"
        )
    if when_full not in {None, "block", "reject"}:
        raise ConfigurationError(f"when_full is {when_full!r}; choose one of block, reject")
    producing = producing or (DEFAULT_KAFKA_PRODUCING if name == "kafka" else DEFAULT_PRODUCING)
    match name:
        case "in-memory":
            from queuecore.providers.memory import MemoryProvider, MemoryStorage

            storage = MemoryStorage(DEFAULT_CAPACITY if capacity is None else capacity, when_full or "block")
            return MemoryProvider(storage, producing=producing, consuming=consuming)
        case "log":
            from queuecore.providers.log import LogProvider

            return LogProvider(Path(str(folder)), producing, consuming)
        case "kafka":
            from queuecore.providers.kafka import KafkaProvider

            return KafkaProvider(str(servers), kafka=kafka or DEFAULT_KAFKA, producing=producing, consuming=consuming)
    raise ConfigurationError(f"there is no provider {name!r}; choose one of {', '.join(PROVIDER_NAMES)}")


def _check_place(name: str, argument: str, value: object, wanted_by: ProviderName) -> None:
    if name == wanted_by and not value:
        raise ConfigurationError(f"the provider {name} needs {argument}; open it with {argument}='…'")
    if name != wanted_by and name in PROVIDER_NAMES and value is not None:
        raise ConfigurationError(
            f"{argument} is {str(value)!r}, but the provider {name} has none; leave it out, or open {wanted_by!r}"
        )
