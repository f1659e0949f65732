"""The provider's settings on their way to the processes that Spark starts, perhaps on other machines.

Spark shows the options of a source, so they hold what is no secret, and name the secrets that are needed. Each process
reads those from its own environment, or from the file that `SWITCHYARD_CONFIG_FILE` names there. A worker on this
machine inherits the environment; on a cluster, whoever starts Spark's workers gives it to them.
"""

import os
from collections.abc import Iterator, Mapping
from functools import reduce

from queueapi.config import Config
from queuecore.config import FILE_VARIABLE, load
from queuecore.config.fields import Leaf, leaves
from queuecore.errors import ConfigurationError

# Offsets by partition, as JSON: what is below is stored already, and a new checkpoint begins there.
START = "start"
# The folder for files of decoded events.
STAGE = "stage"
# How far back events may be, in milliseconds.
KEPT_MS = "keptms"

_DATA_DIR = "SWITCHYARD_DATA_DIR"
_SECRETS = "secrets"


def source_options(installation: Config) -> dict[str, str]:
    """What another process needs to open the installation's provider: settings as their variables would say them, and
    the names of those that are secret."""
    shown = {leaf.variable: str(_value(installation, leaf)) for leaf in _needed() if not _is_secret(leaf)}
    return shown | {_DATA_DIR: str(installation.data), _SECRETS: ",".join(_set_secrets(installation))}


def settings_from(options: Mapping[str, str]) -> Config:
    """The settings that these options and this process's secrets make. ConfigurationError where a secret is missing."""
    own = {leaf.variable for leaf in _needed() if _is_secret(leaf)} | {FILE_VARIABLE}
    secrets = {name: text for name, text in os.environ.items() if name in own}
    # Spark writes the names of options in small letters.
    installation = load(Config, secrets | {name.upper(): text for name, text in options.items()})
    if missing := set(filter(None, options[_SECRETS].split(","))).difference(_set_secrets(installation)):
        raise ConfigurationError(
            f"{', '.join(sorted(missing))}: set for the pipeline, but not for this worker of Spark's; set it in the "
            f"environment of Spark's workers, or in a file that {FILE_VARIABLE} names there"
        )
    return installation


def _needed() -> Iterator[Leaf]:
    """The settings that say where messages live and how they are reached."""
    return (leaf for leaf in leaves(Config) if leaf.key == "queue.type" or leaf.key.startswith("queue.kafka."))


def _set_secrets(installation: Config) -> Iterator[str]:
    return (leaf.variable for leaf in _needed() if _is_secret(leaf) and _value(installation, leaf) != leaf.default)


def _is_secret(leaf: Leaf) -> bool:
    return bool(leaf.metadata["secret"])


def _value(installation: Config, leaf: Leaf) -> object:
    return reduce(getattr, leaf.names, installation)
