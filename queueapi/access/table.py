"""The one table that says which role may do what with which resource. REST and the browser ask it, and nothing else."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from queueapi.choices import Role


class Resource(StrEnum):
    """What there are rights to. Scopes of tokens are named after these, and so are most paths."""

    TENANTS = "tenants"
    TENANT_PROFILES = "tenant-profiles"
    ISOLATION_REQUESTS = "isolation-requests"
    QUEUES = "queues"
    MESSAGES = "messages"
    MESSAGE_TYPES = "message-types"
    TOPICS = "topics"
    GROUPS = "groups"
    LAG = "lag"
    PENDING_REQUESTS = "pending-requests"
    USAGE = "usage"
    PIPELINE = "pipeline"
    ALERTS = "alerts"
    ALERT_RULES = "alert-rules"
    ALERT_CHANNELS = "alert-channels"
    SILENCES = "silences"
    DEAD_LETTERS = "dead-letters"
    DEAD_LETTER_GROUPS = "dead-letter-groups"
    REPLAYS = "replays"
    OPERATIONS = "operations"
    SERVICES = "services"
    PARTITIONS = "partitions"
    REBALANCES = "rebalances"
    ROUTING = "routing"
    AUDIT = "audit"
    TOKENS = "tokens"
    USERS = "users"
    CONFIGURATION = "configuration"


class Verb(StrEnum):
    """READ shows. OPERATE is what keeps things going, as on-call staff do: pause, resume, replay, drain, cancel. WRITE
    is the rest of what changes something."""

    READ = "read"
    OPERATE = "operate"
    WRITE = "write"


READ, OPERATE, WRITE = Verb

_ADMINISTRATORS: Final = frozenset({Role.ADMINISTRATOR})
_STAFF: Final = _ADMINISTRATORS | {Role.OPERATOR}
_SYSTEM: Final = _STAFF | {Role.AUDITOR}
_WORKING: Final = _STAFF | {Role.TENANT_ADMIN}
_EVERYONE: Final = frozenset(Role)

# A tenant's people have these rights for their own tenant's things: `queueapi.access.tenancy`.
RIGHTS: Final[Mapping[Resource, Mapping[Verb, frozenset[Role]]]] = {
    Resource.TENANTS: {READ: _EVERYONE, OPERATE: _STAFF, WRITE: _ADMINISTRATORS},
    Resource.TENANT_PROFILES: {READ: _SYSTEM, WRITE: _ADMINISTRATORS},
    # Tenants ask, administrators decide.
    Resource.ISOLATION_REQUESTS: {READ: _EVERYONE, OPERATE: _WORKING, WRITE: _ADMINISTRATORS},
    Resource.QUEUES: {READ: _EVERYONE, OPERATE: _WORKING, WRITE: _ADMINISTRATORS},
    # What a queue that tenants share holds is all tenants'.
    Resource.MESSAGES: {READ: _SYSTEM, WRITE: _WORKING},
    Resource.MESSAGE_TYPES: {READ: _SYSTEM, WRITE: _ADMINISTRATORS},
    Resource.TOPICS: {READ: _SYSTEM},
    Resource.GROUPS: {READ: _SYSTEM, OPERATE: _STAFF},
    Resource.LAG: {READ: _EVERYONE},
    # Services ask each other for whatever tenant, and nobody counts for whom.
    Resource.PENDING_REQUESTS: {READ: _SYSTEM},
    Resource.USAGE: {READ: _EVERYONE},
    Resource.PIPELINE: {READ: _SYSTEM, OPERATE: _STAFF},
    Resource.ALERTS: {READ: _EVERYONE, OPERATE: _WORKING},
    Resource.ALERT_RULES: {READ: _SYSTEM | {Role.TENANT_ADMIN}, WRITE: _ADMINISTRATORS},
    # Whoever silences something does so for everybody who would be told.
    Resource.ALERT_CHANNELS: {READ: _SYSTEM, OPERATE: _STAFF, WRITE: _ADMINISTRATORS},
    Resource.SILENCES: {READ: _SYSTEM, OPERATE: _STAFF},
    Resource.DEAD_LETTERS: {READ: _EVERYONE, OPERATE: _WORKING},
    Resource.DEAD_LETTER_GROUPS: {READ: _EVERYONE, OPERATE: _WORKING},
    Resource.REPLAYS: {READ: _EVERYONE, OPERATE: _WORKING},
    Resource.OPERATIONS: {READ: _EVERYONE, OPERATE: _WORKING},
    Resource.SERVICES: {READ: _SYSTEM, OPERATE: _STAFF},
    Resource.PARTITIONS: {READ: _SYSTEM},
    Resource.REBALANCES: {READ: _SYSTEM, OPERATE: _STAFF},
    Resource.ROUTING: {READ: _SYSTEM},
    Resource.AUDIT: {READ: _SYSTEM | {Role.TENANT_ADMIN}},
    Resource.TOKENS: {READ: _SYSTEM | {Role.TENANT_ADMIN}, WRITE: _WORKING},
    Resource.USERS: {READ: _ADMINISTRATORS | {Role.AUDITOR}, WRITE: _ADMINISTRATORS},
    Resource.CONFIGURATION: {READ: _ADMINISTRATORS, WRITE: _ADMINISTRATORS},
}


def allows(role: Role, verb: Verb, resource: Resource) -> bool:
    return role in RIGHTS[resource].get(verb, ())


def scope_of(verb: Verb, resource: Resource) -> str:
    """What a token must have for it: `<resource>:read` or `<resource>:write`."""
    return f"{resource}:{'read' if verb == READ else 'write'}"


def scopes_of(role: Role) -> frozenset[str]:
    """All that a token of this role can have a use for."""
    rights = ((verb, resource) for resource, verbs in RIGHTS.items() for verb in verbs)
    return frozenset(scope_of(verb, resource) for verb, resource in rights if allows(role, verb, resource))


# All there are.
SCOPES: Final = tuple(sorted(scopes_of(Role.ADMINISTRATOR)))


def is_within(role: Role, other: Role) -> bool:
    """Whether whoever has the other role may all that this one may."""
    return all(other in roles for verbs in RIGHTS.values() for roles in verbs.values() if role in roles)
