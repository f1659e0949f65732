"""What is looked at in the console of a large installation: every page as an administrator, what others see there,
lists sorted, narrowed and turned over, and plans. Nothing is changed: what is sent along asks for a plan."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from tests.benchmarks.console_rows import own_things, things

ADMINISTRATOR: Final = "administrator"
# What whoever is on call has open.
_ON_CALL: Final = (
    "overview",
    "queues",
    "queue",
    "dead_letters",
    "dead_letter",
    "operation",
    "alerts",
    "alert",
    "search",
)
_YEAR: Final = "range=custom&from=2025-06-01T00:00&to=2026-06-01T00:00"
# By the page that is asked: what it is asked for, each by what it is called.
_ASKED: Final[Mapping[str, Mapping[str, str]]] = {
    "search": {"a common word": "q=queue", "an id": f"q={UUID(int=1)}", "an error": "q=Error"},
    "queues": {
        "a word": "q=queue1",
        "paused": "state=paused",
        "a status": "status=ok",
        "a late page": "page=90&size=100",
    },
    "queue_charts": {"a year": _YEAR, "a week": "range=7d"},
    "queue_messages": {
        "an entity": f"entity={UUID(int=5)}",
        "nobody's": f"entity={UUID(int=2**127)}",
        "one partition": "partition=3&order=oldest&limit=100",
    },
    "reset_offsets": {"the oldest": "to=earliest", "the last hour": "to=ago&minutes=60"},
    "dead_letters": {
        "a common word": "q=hot",
        "a rare word": "q=sensor+7777+",
        "a queue": "queue=Queue7",
        "a tenant": "tenant=Tenant+7",
        "an error": f"error={0:016}",
        "a time": "since=2025-12-31T20:00&until=2025-12-31T23:00",
        "a late page": "page=90&size=100",
    },
    "dead_letter_groups": {"a common word": "q=hot", "a queue": "queue=Queue7", "a late page": "page=90&size=100"},
    "audit": {
        "somebody's": "actor=person-7",
        "a common word": "q=retries",
        "a part of an id": "target=77777",
        "a time": "since=2025-12-31T20:00&until=2025-12-31T23:00",
        "a late page": "page=90&size=100",
    },
    "operations": {"a common word": "q=replay", "a late page": "page=90&size=100"},
    "partitions": {"a word": "q=queue1", "an owner": "owner=service-7", "unsettled": "unsettled=true"},
    "alerts": {"a common word": "q=wait", "of any state": "state=all", "a late page": "state=all&page=90&size=100"},
    "tenants": {"a common word": "q=tenant"},
    "usage": {"all days": "days=90"},
    "plan_rebalance": {"who leaves": "leaving=service-7", "who joins": "joining=5"},
    "resize_queue": {"other partitions": "partitions=40"},
}


class Visit(NamedTuple):
    """`sent`: to be posted; None: it is looked at. Of several of one name the worst is told."""

    name: str
    address: str
    role: str = ADMINISTRATOR
    sent: Mapping[str, Any] | None = None


def visits() -> Iterator[Visit]:
    from console.own_pages import OWN
    from queueapi.choices import Role
    from tests.console_pages import addresses

    pages = addresses(things())
    yield from (Visit(*page) for page in pages.items())
    yield from (Visit(f"{name} on call", pages[name], Role.OPERATOR) for name in _ON_CALL)
    own = {name: address for name, address in addresses(own_things()).items() if name in OWN}
    for role in (Role.TENANT_ADMIN, Role.TENANT_VIEWER):
        yield from (Visit(f"{name} of a {role.label.lower()}", address, role) for name, address in own.items())
    for name, asked in _ASKED.items():
        yield from (Visit(f"{name}: {what}", f"{pages[name]}?{query}") for what, query in asked.items())
    yield Visit("dead_letters: a group", f"{pages['dead_letters']}?state=open&group={things()['letter_group']}")
    yield from _sorted(pages)
    yield from _plans(pages)


def _sorted(pages: Mapping[str, str]) -> Iterator[Visit]:
    """Each list by each of its columns, both ways."""
    from console.urls import urlpatterns

    for pattern in urlpatterns:
        columns = getattr(getattr(pattern.callback, "view_class", None), "columns", ())
        for sort in (sign + column for column in columns for sign in ("", "-")):
            yield Visit(f"{pattern.name} in any order", f"{pages[pattern.name]}?sort={sort}")


def _plans(pages: Mapping[str, str]) -> Iterator[Visit]:
    group, shown = things()["letter_group"], [str(UUID(int=number + 1)) for number in range(100)]
    letters = {
        "all letters": {"filter": "{}"},
        "a queue's": {"filter": f'{{"queue": "{UUID(int=1)}"}}'},
        "a word's": {"filter": '{"text": "hot"}'},
        "a rare word's": {"filter": '{"text": "sensor 7777 "}'},
        "a time's": {"filter": '{"since": "2025-12-31T20:00:00Z"}'},
        "a group's": {"group": str(group)},
        "a page's": {"letter": shown},
    }
    for name in ("replay_letters", "discard_letters", "restore_letters", "release_letters"):
        yield from (Visit(f"{name}: {what}", pages[name], sent=sent) for what, sent in letters.items())
    for name in ("pause_queues", "resume_queues"):
        yield Visit(f"{name}: a page's", pages[name], sent={"queue": shown})
