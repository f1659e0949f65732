"""`manage.py settings_reference`: the settings reference, as Markdown, made from the settings themselves."""

from typing import Any

from django.core.management.base import BaseCommand

from queueapi.config import Config
from queuecore.config import FILE_VARIABLE, SettingInfo, describe
from queuecore.providers.kafka.mapping import MAPPED, Mapped

_INTRODUCTION = """\
# Settings

Made by `make reference` from `queueapi/config.py`, `queuecore/config/` and `queuecore/providers/kafka/mapping.py`;
change it there.

Settings are environment variables, read once when a process starts. Everything wrong with them is reported at once,
and a `SWITCHYARD_` variable that is not listed here is an error. A relative folder counts from where the process
starts; `~` is the home of its user. *Secret* values never appear in a message.

"""

_QUEUES = f"""
## Queues

These can stand in a YAML file as well, under the keys shown; `{FILE_VARIABLE}` names the file. A dot in a key
is a level of the tree, or just a dot: `ota.topic: x` and `ota:` with `topic: x` below it are the same. A variable
beats the file, and a key that is not listed here is an error. What is under a provider's name is read by that provider
alone.

```yaml
queue:
  type: kafka
  core:
    partitions: 20
  kafka:
    bootstrap.servers: kafka:9092
```

"""

_KAFKA = """
## Kafka's settings at librdkafka

What each setting below `queue.kafka` decides at librdkafka, the client that reaches Kafka. Programs that use
`queuecore` set the option instead. Any other of [librdkafka's
properties](https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md) can be passed through `properties`,
`producer.properties` and `consumer.properties`. Refused at the start are those that a setting below decides, that
librdkafka does not know, or that would have no effect. [Run on Kafka](../howto/kafka.md) has examples.

| Setting | Option | librdkafka | How |
|---|---|---|---|
"""

_HEAD = "| Variable | Value | Default | Meaning |\n|---|---|---|---|\n"


class Command(BaseCommand):
    help = "Print the settings reference as Markdown."
    requires_system_checks: list[str] = []

    def handle(self, *_arguments: Any, **_options: Any) -> None:
        self.stdout.write(settings_reference(Config), ending="")


def settings_reference(settings_class: type[Any]) -> str:
    settings = list(describe(settings_class))
    alone = "".join(_row(info) for info in settings if not info.key)
    in_tree = "".join(_row(info) for info in settings if info.key)
    at_kafka = "".join(_mapped_row(one) for one in MAPPED)
    return _INTRODUCTION + _HEAD + alone + _QUEUES + _HEAD + in_tree + _KAFKA + at_kafka


def _row(info: SettingInfo) -> str:
    names = f"`{info.variable}`" + (f" or `{info.alias}`" if info.alias else "")
    names += f"<br>`{info.key}`" if info.key else ""
    kind = f"{info.kind}, *secret*" if info.secret else info.kind
    default = f"`{info.default}`" if info.default else "empty"
    return f"| {names} | {kind} | {default} | {info.help_text} |\n"


def _mapped_row(one: Mapped) -> str:
    setting = f"`{one.key}`" if one.key else "none"
    properties = ", ".join(f"`{name}`" for name in one.properties) or "none"
    return f"| {setting} | `{one.option}` | {properties} | {one.how or 'As it is.'} |\n"
