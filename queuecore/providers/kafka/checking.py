"""Everything wrong with a cluster's settings is said when the provider is opened, not when it is first used."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer

from queuecore.errors import ConfigurationError
from queuecore.providers.kafka.connection import Connection, Setting
from queuecore.providers.kafka.mapping import OWN, decided_by
from queuecore.providers.kafka.settings import consumer_settings, producer_settings
from queuecore.providers.kafka.transactional_client import transactional_settings
from queuecore.providers.options import ConsumerOptions, KafkaOptions, KafkaSecurity, ProducerOptions

_PROPERTY: Final = re.compile(r"[a-z]+(?:[._][a-z0-9]+)+")
_IGNORED: Final = re.compile(r"property (\S+) is a (producer|consumer) property and will be ignored")


def check_settings(connection: Connection, producing: ProducerOptions, consuming: ConsumerOptions) -> None:
    """ConfigurationError for a file that is not there, and for a property that is ours, unknown, wrong or without
    effect. Connects nowhere and leaves nothing behind."""
    options = connection.options
    _check_files(options.security)
    _check_properties(options)
    # Without servers the library reads its settings as always, and has nowhere to go.
    shared = {name: value for name, value in connection.settings().items() if name != "bootstrap.servers"}
    _try_producer(shared | producer_settings(producing, options))
    # Once is enough for certificates, which take the longest to read.
    del shared["security.protocol"]
    _try_producer(shared | transactional_settings("unused", producing, options))
    # With an id a member may speak another protocol than without.
    for member_id in (None,) if options.group_protocol == "classic" else (None, "unused"):
        settings = consumer_settings(consuming, options, grows=True, member_id=member_id)
        _try_consumer(shared | settings | {"group.id": "unused"})


def _check_files(security: KafkaSecurity) -> None:
    for name in ("ca", "certificate", "key"):
        if (path := getattr(security, name)) and not Path(path).is_file():
            raise ConfigurationError(
                f"KafkaSecurity.{name} (queue.kafka.ssl.{name}.location) is {path!r}, where there is no file; name one "
                "that this process can read"
            )


def _check_properties(options: KafkaOptions) -> None:
    for where in ("properties", "producer_properties", "consumer_properties"):
        for name in getattr(options, where):
            if (ours := decided_by(name)) is not None:
                raise ConfigurationError(f"{where} has {name!r}, which {ours} decides; set that instead")
            if name in OWN:
                raise ConfigurationError(f"{where} has {name!r}, which the provider decides itself; leave it out")


class _Heard(logging.Logger):
    """Keeps what the library says of its settings, for this one reader."""

    def __init__(self) -> None:
        super().__init__("kafka-settings")
        self.lines: list[str] = []

    def handle(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _try_producer(settings: dict[str, Setting]) -> None:
    heard = _Heard()
    try:
        Producer(settings, logger=heard).poll(0)
    except (KafkaException, TypeError) as error:
        raise _refused(error) from error
    _check_ignored(heard.lines)


def _try_consumer(settings: dict[str, Setting]) -> None:
    heard = _Heard()
    try:
        consumer = Consumer(settings, logger=heard)
    except (KafkaException, TypeError) as error:
        raise _refused(error) from error
    consumer.poll(0)
    consumer.close()
    _check_ignored(heard.lines)


def _check_ignored(lines: Iterable[str]) -> None:
    for line in lines:
        if found := _IGNORED.search(line):
            name, kind = found.groups()
            raise ConfigurationError(
                f"{name!r} is a property of {kind}s alone and would have no effect elsewhere; move it to "
                f"{kind}_properties"
            )


def _refused(error: Exception) -> ConfigurationError:
    """Our error for the library's, with the settings that decide the properties it names."""
    first = error.args[0]
    reason = (first.str() if isinstance(error, KafkaException) else str(first)).strip()
    ours = {str(mapped) for name in _PROPERTY.findall(reason) if (mapped := decided_by(name)) is not None}
    remedy = f"change {' or '.join(sorted(ours))}" if ours else "change the property, or leave it out"
    return ConfigurationError(f"Kafka's client refuses its settings: {reason}; {remedy}")
