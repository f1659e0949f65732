"""A whole configuration, imported: all of it in one transaction, or nothing.

Each entry is entered by the action that people use, in a savepoint of its own: what that refuses is noted with its
place, and the next one is tried, so that all problems are told at once. A plan is the same, undone at the end.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db import transaction
from django.db.models import Model

from queueapi.actions.actor import Actor, audit
from queueapi.actions.configuration_alerts import enter_channel, enter_rule
from queueapi.actions.configuration_checks import Entered
from queueapi.actions.configuration_entries import enter_message_type, enter_profile, enter_queue, enter_tenant
from queueapi.change_plans import NOTHING, Change
from queueapi.configuration.reading import Document, Entry, Problem, read_document
from queueapi.configuration.sections import (
    ALERT_CHANNELS,
    ALERT_RULES,
    FORMAT,
    MESSAGE_TYPES,
    PROFILES,
    QUEUES,
    SECTIONS,
    TENANTS,
    Section,
)
from queueapi.configuration.yaml_lines import Lines
from queueapi.errors import InvalidInput
from queueapi.models import DEFAULT_PROFILE, AlertChannel, AlertRule, MessageType, Queue, Tenant, TenantProfile
from queueapi.selectors.configuration_parents import Spoilt, is_orphan
from queuecore.errors import QueueError
from queuecore.topics import SYSTEM_TENANT

_ENTER: Final[Mapping[str, Callable[[Actor, Mapping[str, Any]], Entered]]] = {
    PROFILES.name: enter_profile,
    TENANTS.name: enter_tenant,
    QUEUES.name: enter_queue,
    MESSAGE_TYPES.name: enter_message_type,
    ALERT_CHANNELS.name: enter_channel,
    ALERT_RULES.name: enter_rule,
}
# All that there is in a document.
_MODELS: Final[tuple[type[Model], ...]] = (TenantProfile, Tenant, Queue, MessageType, AlertChannel, AlertRule)


@dataclass(slots=True)
class ConfigurationPlan:
    """What an import does, or would do.

    changes   a thing that is new is one change; of one that is there, each key that changes
    problems  what stands in the way, each with its place in the document; with any, nothing is done
    """

    changes: list[Change] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    created: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    @property
    def summary(self) -> str:
        if self.problems:
            return f"{NOTHING}: {_problems_told(self.problems)}"
        made = {"create": self.created, "change": self.changed}
        told = [f"{verb} {_counted(things)}" for verb, things in made.items() if things]
        return "; ".join(told) or NOTHING

    def note(self, entry: Entry, entered: Entered) -> None:
        changes = list(_changes(entry.label, entered))
        self.changes += changes
        # What is warned of is what changes.
        self.warnings += [f"{entry.label}: {warning}" for warning in entered.warnings] if changes else []
        if changes:
            (self.created if entered.before is None else self.changed)[entry.section.thing] += 1


class _Undone(Exception):
    """Ends the transaction."""


def plan_configuration(actor: Actor, document: object, lines: Lines | None = None) -> ConfigurationPlan:
    """What `import_configuration` would do now, and what stands in its way, with its line where the document's `lines`
    are given. InvalidInput where the document itself makes no sense, with all that is wrong, whatever it is."""
    read = read_document(document)
    plan = ConfigurationPlan(problems=list(read.problems))
    try:
        with transaction.atomic():
            _enter_all(actor, read, plan)
            raise _Undone
    except _Undone:
        plan.problems = _located(plan.problems, lines)
        if read.problems:
            raise _refused(plan.problems) from None
    return plan


def import_configuration(actor: Actor, document: object, lines: Lines | None = None) -> ConfigurationPlan:
    """Make what is missing and change what differs, as the document says: all of it, or nothing. What was done.
    InvalidInput names everything that stands in the way, under its place; ProviderUnavailable. Repeatable: what is so
    already is left alone, and what leaves the database is under way once this is committed, as after any change."""
    read = read_document(document)
    plan = ConfigurationPlan(problems=list(read.problems))
    with transaction.atomic():
        _enter_all(actor, read, plan)
        if plan.problems:
            raise _refused(_located(plan.problems, lines))
        if plan.changes:
            made = {"created": dict(plan.created), "changed": dict(plan.changed)}
            audit(actor, "import", "configuration", FORMAT, after=made)
    return plan


@contextmanager
def holding_configuration() -> Iterator[None]:
    """Nothing that there is in it changes meanwhile. What is new is not kept out: an import leaves it alone."""
    with transaction.atomic():
        _wait_for_others()
        for model in _MODELS:
            # What only refers to it, as an alert to its rule, may be new meanwhile.
            list(model._default_manager.order_by("pk").select_for_update(no_key=True).values_list("pk"))  # noqa: SLF001
        yield


def _enter_all(actor: Actor, read: Document, plan: ConfigurationPlan) -> None:
    _wait_for_others()
    spoilt = set(read.spoilt)
    for section in SECTIONS:
        entries = [entry for entry in read.entries if entry.section is section]
        _enter_section(actor, _in_order(section, entries), spoilt, plan)


def _wait_for_others() -> None:
    """One import at a time: two would lock the same rows in different orders."""
    list(TenantProfile.objects.select_for_update(no_key=True).filter(pk=DEFAULT_PROFILE).values_list("pk"))


def _in_order(section: Section, entries: list[Entry]) -> list[Entry]:
    """Tenants' own queues before those that all share: where both are new, nothing of a tenant's is in the shared one
    yet."""
    if section is not QUEUES:
        return entries
    shared = Tenant.objects.filter(pk=SYSTEM_TENANT).values_list("name", flat=True).first() or ""
    return sorted(entries, key=lambda entry: str(entry.values["tenant"]).lower() == shared.lower())


def _enter_section(actor: Actor, entries: list[Entry], spoilt: Spoilt, plan: ConfigurationPlan) -> None:
    """In turns: what needs another entry of its section, as a queue that forwards does, waits for the next."""
    orphans = [entry for entry in entries if is_orphan(entry, spoilt)]
    spoilt.update((entry.section.name, entry.identity) for entry in orphans)
    waiting = [entry for entry in entries if entry not in orphans]
    while waiting:
        refused: list[tuple[Entry, QueueError]] = []
        for entry in waiting:
            try:
                with transaction.atomic():
                    entered = _ENTER[entry.section.name](actor, entry.values)
            except QueueError as error:
                if error.retryable:
                    # That the provider is away says nothing about the document.
                    raise
                refused.append((entry, error))
            else:
                plan.note(entry, entered)
        if len(refused) == len(waiting):
            for entry, why in refused:
                plan.problems += _problems(entry, why)
                spoilt.add((entry.section.name, entry.identity))
            return
        waiting = [entry for entry, _ in refused]


def _problems(entry: Entry, error: QueueError) -> Iterator[Problem]:
    """Each at its key, as far as the error tells. Of what is not whole those of its keys: others may come of what was
    left out."""
    for name, messages in _by_field(entry.section, error):
        if entry.is_whole or name in entry.values:
            yield from (Problem(f"{entry.place}.{name}" if name else entry.place, message) for message in messages)


def _by_field(section: Section, error: QueueError) -> Iterator[tuple[str, list[str]]]:
    fields = error.fields.get("fields")
    if isinstance(fields, Mapping):
        yield from ((name if name in section.kinds else "", list(messages)) for name, messages in fields.items())
        return
    name, _, rest = error.message.partition(": ")
    yield (name, [rest]) if name in section.kinds and rest else ("", [error.message])


def _changes(label: str, entered: Entered) -> Iterator[Change]:
    before, after = entered.before, entered.after
    if before is None:
        yield Change(label, None, after)
        return
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield Change(f"{label}: {name}", before.get(name), after.get(name))
    if entered.secret_in:
        shown = after[entered.secret_in]
        yield Change(f"{label}: a secret of {entered.secret_in}", shown, shown)


def _located(problems: list[Problem], lines: Lines | None) -> list[Problem]:
    return [replace(problem, line=lines.of(problem.place)) for problem in problems] if lines else problems


def _refused(problems: list[Problem]) -> InvalidInput:
    by_place: dict[str, list[str]] = {}
    for problem in problems:
        by_place.setdefault(problem.place, []).append(problem.told)
    return InvalidInput(f"nothing was changed: {_problems_told(problems)}", fields=by_place)


def _problems_told(problems: list[Problem]) -> str:
    first = f"{problems[0].place}: {problems[0].told}"
    return first if len(problems) == 1 else f"{len(problems)} problems, of which the first is {first}"


def _counted(things: Counter[str]) -> str:
    return ", ".join(f"{number} {thing}{'' if number == 1 else 's'}" for thing, number in things.items())
