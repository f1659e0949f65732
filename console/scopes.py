"""What the scopes of tokens let a program do, in words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from queueapi.access.table import READ, SCOPES, WRITE, Resource, scope_of

WORDS: Final = {
    Resource.TENANTS: "tenants and their quotas",
    Resource.TENANT_PROFILES: "what tenants have in common",
    Resource.ISOLATION_REQUESTS: "requests for queues of a tenant's own, and their approval",
    Resource.QUEUES: "queues: create, change, pause, drain, delete",
    Resource.MESSAGES: "messages: look into queues, and publish",
    Resource.MESSAGE_TYPES: "what payloads are made of",
    Resource.TOPICS: "topics at the provider",
    Resource.GROUPS: "consumer groups and their offsets",
    Resource.LAG: "lag, now and over time",
    Resource.PENDING_REQUESTS: "requests that wait for answers",
    Resource.USAGE: "what tenants used",
    Resource.PIPELINE: "how the pipeline is",
    Resource.ALERTS: "alerts: look, acknowledge",
    Resource.ALERT_RULES: "when alerts fire, and who is told",
    Resource.ALERT_CHANNELS: "ways to tell people of alerts",
    Resource.SILENCES: "alerts of which nobody is told for a while",
    Resource.DEAD_LETTERS: "dead letters: look, edit, discard, restore",
    Resource.DEAD_LETTER_GROUPS: "dead letters by error, and notes on them",
    Resource.REPLAYS: "replays of dead letters",
    Resource.OPERATIONS: "changes under way: pause, resume, cancel",
    Resource.SERVICES: "service instances: look, drain",
    Resource.PARTITIONS: "who owns which partition",
    Resource.REBALANCES: "how partitions are divided",
    Resource.ROUTING: "where messages go",
    Resource.AUDIT: "who changed what",
    Resource.TOKENS: "tokens",
    Resource.USERS: "people; to write is worth an administrator's password",
    Resource.CONFIGURATION: "the whole configuration as a document",
}


@dataclass(frozen=True, slots=True)
class Box:
    """One scope to choose, or none where there is no such."""

    scope: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A resource's scopes, and what they are about."""

    resource: Resource
    about: str
    read: Box | None
    write: Box | None


def scope_rows(chosen: Iterable[str]) -> Iterator[ScopeRow]:
    """All there are."""
    wanted = frozenset(chosen)
    for resource in Resource:
        read, write = (_box(scope_of(verb, resource), wanted) for verb in (READ, WRITE))
        yield ScopeRow(resource, WORDS[resource], read, write)


def _box(scope: str, wanted: frozenset[str]) -> Box | None:
    return Box(scope, scope in wanted) if scope in SCOPES else None
