"""A configuration document, checked for what can be told without looking at what is there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from queueapi.choices import TenantState
from queueapi.configuration.sections import (
    ALERT_RULES,
    FORMAT,
    FORMAT_KEY,
    MESSAGE_TYPES,
    SECTIONS,
    TENANTS,
    Section,
)
from queueapi.names import unknown_name

Identity = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where: `queues[3].partitions`. `line` is that of the text, counted from 1; None where there is
    none."""

    place: str
    why: str
    line: int | None = None

    @property
    def told(self) -> str:
        return self.why if self.line is None else f"line {self.line}: {self.why}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing as the document has it; where that is not all right, with those keys that are, and not `is_whole`."""

    section: Section
    number: int
    values: Mapping[str, Any]
    is_whole: bool = True

    @property
    def place(self) -> str:
        return f"{self.section.name}[{self.number}]"

    @property
    def label(self) -> str:
        """`queue System/Main`."""
        return f"{self.section.thing} {'/'.join(str(self.values[key]) for key in self.section.identity)}"

    @property
    def identity(self) -> Identity:
        return identity_of(self.section, self.values)


@dataclass(slots=True)
class Document:
    """What was read. Of `spoilt` things there are entries that cannot be used as they are, and problems that say why:
    that they are missing is no further problem."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    spoilt: set[tuple[str, Identity]] = field(default_factory=set)


def identity_of(section: Section, values: Mapping[str, Any]) -> Identity:
    return tuple(str(values.get(key)).lower() for key in section.identity)


def read_document(given: object) -> Document:
    """All entries of which it can be told what they mean, and everything that is wrong with them and the others."""
    document = Document()
    if not isinstance(given, dict):
        document.problems.append(Problem("document", f"give an object with {FORMAT_KEY} and the sections there are"))
        return document
    if given.get(FORMAT_KEY) != FORMAT or isinstance(given.get(FORMAT_KEY), bool):
        why = f"{given.get(FORMAT_KEY)!r} is not known here; this release reads format {FORMAT}"
        document.problems.append(Problem(FORMAT_KEY, why))
    known = {FORMAT_KEY, *(section.name for section in SECTIONS)}
    unknown = [key for key in given if key not in known]
    document.problems += [Problem(_shown(key), unknown_name("section", key, known)) for key in unknown]
    for section in SECTIONS:
        _read_section(document, section, given.get(section.name))
    return document


def _read_section(document: Document, section: Section, given: object) -> None:
    if given is None:
        return
    if not isinstance(given, list):
        document.problems.append(Problem(section.name, f"give a list with one entry for each {section.thing}"))
        return
    seen: dict[Identity, Entry] = {}
    for number, values in enumerate(given):
        if not isinstance(values, dict):
            document.problems.append(Problem(f"{section.name}[{number}]", f"describe a {section.thing} by its keys"))
            continue
        entry = Entry(section, number, values)
        problems = list(_problems(entry))
        first = seen.setdefault(entry.identity, entry)
        if first is not entry:
            problems.append(Problem(entry.place, f"{first.place} is the same {section.thing}; keep one of them"))
        document.problems += problems
        if problems:
            document.spoilt.add((section.name, entry.identity))
        if not problems or (first is entry and _is_known(entry, problems)):
            bad = places(problems)
            good = {key: values[key] for key in section.kinds if key in values and f"{entry.place}.{key}" not in bad}
            document.entries.append(Entry(section, number, good, is_whole=not problems))


def places(problems: Iterable[Problem]) -> set[str]:
    return {problem.place for problem in problems}


def _is_known(entry: Entry, problems: Iterable[Problem]) -> bool:
    """Whether it can be told which thing is meant."""
    return not places(problems) & {f"{entry.place}.{key}" for key in entry.section.identity}


def _problems(entry: Entry) -> Iterator[Problem]:
    section, values = entry.section, entry.values
    for key, value in values.items():
        place = f"{entry.place}.{_shown(key)}"
        if key not in section.kinds:
            yield Problem(place, unknown_name("key", key, section.kinds))
        elif why := section.kinds[key].problem(value):
            yield Problem(place, why)
    for key in section.identity:
        if key not in values:
            yield Problem(f"{entry.place}.{key}", f"this says which {section.thing} is meant; give it")
    if section is TENANTS:
        yield from _state_problems(entry)
    if section is ALERT_RULES:
        yield from _rule_problems(entry)
    if section is MESSAGE_TYPES and "files" in values and "descriptor_set" in values:
        yield Problem(f"{entry.place}.descriptor_set", "give either files or descriptor_set")


def _shown(key: str) -> str:
    """As any answer can hold it."""
    return key[:100].encode(errors="backslashreplace").decode()


def _state_problems(entry: Entry) -> Iterator[Problem]:
    state, reason = entry.values.get("state"), entry.values.get("reason")
    if isinstance(state, str) and state not in TenantState.values:
        there_are = ", ".join(TenantState.values)
        yield Problem(f"{entry.place}.state", f"there is no {state[:30]!r}; choose one of {there_are}")
    elif state == TenantState.SUSPENDED and not reason:
        yield Problem(f"{entry.place}.reason", "say why it is suspended: whoever is refused wants to know")
    elif state != TenantState.SUSPENDED and reason:
        yield Problem(f"{entry.place}.reason", f"only what is {TenantState.SUSPENDED.value} has a reason; leave it out")


def _rule_problems(entry: Entry) -> Iterator[Problem]:
    values = entry.values
    if values.get("queue") is not None and values.get("tenant") is None:
        yield Problem(f"{entry.place}.tenant", "say whose queue it is; those that tenants share are the system's")
    if values.get("is_default") is True and "metric" not in values:
        yield Problem(
            f"{entry.place}.metric", "this says which of the rules that come with the system is meant; give it"
        )
