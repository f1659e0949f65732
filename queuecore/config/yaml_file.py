"""Settings from a YAML file. Values are taken as the text that is written: both sources are read by one rule."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True)
class Written:
    text: str
    line: int


@dataclass(slots=True)
class SettingsFile:
    """What a file says, by whole keys (`queue.core.partitions`), and everything wrong with how it says it.

    A dot in a key is the same as a level: `ota.topic: x` says what `ota:` with `topic: x` below it says. `mappings`
    are the keys whose value may be names and values, which become `name:value;name2:value2`.
    """

    path: Path
    known: frozenset[str]
    mappings: frozenset[str] = frozenset()
    written: dict[str, Written] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def read(self) -> None:
        try:
            root = yaml.compose(self.path.read_bytes(), Loader=yaml.SafeLoader)
        except OSError as error:
            self.problems.append(f"{self.path} cannot be read ({error.strerror})")
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self._problem(line, f"is not YAML: {error.problem}")
        except yaml.YAMLError as error:
            self._problem(1, f"is not YAML: {error}")
        else:
            if root is not None:
                self._take(root, "")

    def _take(self, node: yaml.Node, section: str) -> None:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.MappingNode):
            if not _is_nothing(node):
                self._problem(line, f"{section or 'the file'} must hold keys below it, not a value")
            return
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode):
                self._take_entry(section, name.value, name.start_mark.line + 1, value)
            else:
                self._problem(line, f"{section or 'the file'} has a key that is not a name")

    def _take_entry(self, section: str, name: str, line: int, value: yaml.Node) -> None:
        key = f"{section}.{name}" if section else name
        if key in self.known:
            self._take_value(key, line, value)
        elif any(known.startswith(f"{key}.") for known in self.known):
            self._take(value, key)
        else:
            close = self._meant(section, name)
            self._problem(line, f"{key} is not a setting" + (f"; did you mean {close}?" if close else ""))

    def _take_value(self, key: str, line: int, value: yaml.Node) -> None:
        if key in self.written:
            self._problem(line, f"{key} is set a second time; line {self.written[key].line} sets it too")
        elif key in self.mappings and isinstance(value, yaml.MappingNode):
            self._take_mapping(key, line, value)
        elif not isinstance(value, yaml.ScalarNode):
            self._problem(line, f"{key} must be a single value")
        elif _is_nothing(value):
            self._problem(line, f'{key} has no value; leave it out for its default, or write "" for nothing')
        else:
            self.written[key] = Written(value.value, line)

    def _take_mapping(self, key: str, line: int, mapping: yaml.MappingNode) -> None:
        entries = []
        for name, value in mapping.value:
            if not all(isinstance(one, yaml.ScalarNode) and ";" not in one.value for one in (name, value)):
                self._problem(name.start_mark.line + 1, f"{key} must hold names with single values, without ';'")
                return
            entries.append(f"{name.value}:{value.value}")
        self.written[key] = Written(";".join(entries), line)

    def _meant(self, section: str, name: str) -> str | None:
        """The setting or section, preferably of this section, whose name comes closest."""
        start = f"{section}." if section else ""
        here = {known.removeprefix(start) for known in self.known if known.startswith(start)}
        here |= {".".join(parts[: name.count(".") + 1]) for parts in (key.split(".") for key in here)}
        if close := closest(name, here):
            return start + close
        return closest(start + name, self.known, cutoff=0.8)

    def _problem(self, line: int, what: str) -> None:
        self.problems.append(f"{self.path}, line {line}: {what}")


def closest(wrong: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Which of the known names was probably meant."""
    return next(iter(difflib.get_close_matches(wrong, sorted(known), n=1, cutoff=cutoff)), None)


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"
