"""Settings from where they are written: variables first, then the file, then more general settings, then defaults."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from queuecore.config.fields import PREFIX, Leaf, build, leaves
from queuecore.config.values import parse
from queuecore.config.yaml_file import SettingsFile, closest
from queuecore.errors import ConfigurationError, QueueError

# Names the YAML file. Only what is in a section can stand there.
FILE_VARIABLE: Final = f"{PREFIX}CONFIG_FILE"

T = TypeVar("T")


def load(settings_class: type[T], environ: Mapping[str, str]) -> T:
    """An instance of the class, or one ConfigurationError that lists everything wrong."""
    known = tuple(leaves(settings_class))
    file = _read_file(known, environ)
    problems: dict[str, str] = {}  # by key: what two fields show is wrong once
    values: dict[tuple[str, ...], Any] = {}
    for leaf in known:
        if (found := _find(leaf, environ, file)) is None:
            continue
        where, raw = found
        try:
            values[leaf.names] = parse(leaf, raw)
        except QueueError as error:  # it names the value itself
            problems.setdefault(leaf.key, f"{where}: {error}")
        except ValueError as error:
            shown = "its value" if leaf.metadata["secret"] else repr(raw)
            problems.setdefault(leaf.key, f"{where}: {shown} {error}")
    if wrong := [*problems.values(), *file.problems, *_unknown(known, environ)]:
        raise ConfigurationError("; ".join(wrong))
    instance: T = build(settings_class, values | dict(_from_general(known, values)))
    return instance


def _from_general(
    known: Iterable[Leaf], values: Mapping[tuple[str, ...], Any]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What is not set itself, but falls back to something that is."""
    by_key = {leaf.key: values[leaf.names] for leaf in known if leaf.names in values}
    for leaf in known:
        if leaf.names not in values and (general := leaf.metadata["falls_back_to"]) in by_key:
            yield leaf.names, by_key[general]


def _read_file(known: Iterable[Leaf], environ: Mapping[str, str]) -> SettingsFile:
    name = environ.get(FILE_VARIABLE, "")
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"{FILE_VARIABLE}: {name!r} names no file ({error}); write the whole path") from None
    in_file = [leaf for leaf in known if leaf.is_in_section]
    mappings = frozenset(leaf.key for leaf in in_file if leaf.metadata["is_mapping"])
    file = SettingsFile(path, frozenset(leaf.key for leaf in in_file), mappings)
    if name:
        file.read()
    return file


def _find(leaf: Leaf, environ: Mapping[str, str], file: SettingsFile) -> tuple[str, str] | None:
    """Where the setting is written, and the text."""
    for variable in (leaf.variable, leaf.metadata["alias"]):
        if variable in environ:
            return variable, environ[variable]
    if written := file.written.get(leaf.key):
        return f"{file.path}, line {written.line}: {leaf.key}", written.text
    return None


def _unknown(known: Iterable[Leaf], environ: Mapping[str, str]) -> Iterator[str]:
    # Compared without what all have in common, which would make everything resemble everything.
    names = {leaf.variable.removeprefix(PREFIX) for leaf in known} | {FILE_VARIABLE.removeprefix(PREFIX)}
    for name in sorted(environ):
        if name.startswith(PREFIX) and (bare := name.removeprefix(PREFIX)) not in names:
            close = closest(bare, names)
            yield f"{name} is not a setting" + (f"; did you mean {PREFIX}{close}?" if close else "")
