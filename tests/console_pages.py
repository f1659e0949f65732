"""Every page of the console that is looked at, by its address. Whoever adds one has it measured, its queries counted.

A route names what it shows by how it begins; `THINGS` says which of an installation's things that is.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

# By the beginning of a route up to what is named in it: the thing whose key that is.
THINGS: Final[Mapping[str, str]] = {
    "queues/<uuid:pk>": "queue",
    "queues/<uuid:pk>/pauses/<int:pause>": "pause",
    "queues/<uuid:pk>/groups/<str:group>": "consumer_group",
    "tenants/<uuid:pk>": "tenant",
    "tenants/profiles/<uuid:pk>": "tenant_profile",
    "dead-letters/<uuid:pk>": "letter",
    "dead-letters/groups/<int:pk>": "letter_group",
    "isolation-requests/<uuid:pk>": "isolation_request",
    "services/<str:pk>": "service",
    "rebalances/<uuid:pk>": "rebalance",
    "operations/<uuid:pk>": "operation",
    "alerts/<uuid:pk>": "alert",
    "alert-silences/<uuid:pk>": "silence",
    "alert-rules/<uuid:pk>": "alert_rule",
    "alert-channels/<uuid:pk>": "alert_channel",
    "tokens/<uuid:pk>": "token",
    "users/<int:pk>": "user",
}
# What is no page: a file, or the interfaces of others.
NO_PAGES: Final = {"health", "metrics", "login", "logout", "letter_payload", "export_queues"}

_NO_QUESTIONS: Final = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK", "COMMIT")


class UnknownThing(Exception):
    """A route names something that `THINGS` does not know; the message says which."""


def addresses(things: Mapping[str, Any]) -> dict[str, str]:
    """By its name each page's address, on these things; those that only take what is sent are among them."""
    return {name: _address(route, things) for name, route in _routes() if name not in NO_PAGES}


def queries_of(get: Any) -> int:
    """How often this asks any database. Where a transaction begins and ends is no question."""
    from django.db import connections
    from django.test.utils import CaptureQueriesContext

    with ExitStack() as stack:
        contexts = [stack.enter_context(CaptureQueriesContext(one)) for one in connections.all()]
        get()
    asked = (query["sql"] for context in contexts for query in context.captured_queries)
    return sum(not sql.startswith(_NO_QUESTIONS) for sql in asked)


def _routes() -> Iterator[tuple[str, str]]:
    from django.urls import URLPattern

    from console.urls import urlpatterns

    for pattern in urlpatterns:
        if isinstance(pattern, URLPattern) and pattern.name is not None:
            yield pattern.name, str(pattern.pattern)


def _address(route: str, things: Mapping[str, Any]) -> str:
    """Each name in the route is what the route up to there begins with."""
    known, made = "", ""
    for part in route.split("/"):
        known = f"{known}/{part}" if known else part
        if part.startswith("<"):
            if known not in THINGS:
                raise UnknownThing(f"nobody knows what {known!r} of {route!r} is; say so in tests/console_pages.py")
            part = str(things[THINGS[known]])
        made += f"/{part}"
    return made or "/"
