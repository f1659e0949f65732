"""Requests to publish messages, answered by the short way before Django sees them; all others go on to Django."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from typing import Any, Final

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from console.gathering import Gathering
from console.middleware import content_security_policy
from queueapi.config import config
from queueapi.rest.short_way import JSON, Asked, answer_together

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# Each waits for the disk for most of its time.
THREADS: Final = 16

_PATH: Final = re.compile(r"/api/v1/queues/(?P<queue>[^/]+)/messages(?P<batch>/batch)?")
_BEARER: Final = "bearer "
# Of a batch, and of a queue's messages, which can be looked at.
_ALLOWED: Final = {True: "POST, OPTIONS", False: "GET, POST, HEAD, OPTIONS"}
# What the long way heeds, and this one knows nothing of.
_UNUSUAL: Final = frozenset(
    (b"idempotency-key", b"if-match", b"if-none-match", b"transfer-encoding", b"content-encoding", b"expect", b"cookie")
)


class PublishingFirst:
    """An ASGI application in front of another one. For one event loop."""

    def __init__(self, others: Application) -> None:
        self._others = others
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="publishing")
        self._gathering = Gathering(self._threads, _answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and (path := _PATH.fullmatch(scope["path"])):
            headers = dict(scope["headers"])
            if _is_usual(scope, headers) and (body := await _body(receive)) is not None:
                response = await self._answer(path, headers, body)
                if response is not None:
                    response.headers["Allow"] = _ALLOWED[path["batch"] is not None]
                    await _send(response, self._standing_headers, send)
                    return
                receive = _again(body, receive)
        await self._others(scope, receive, send)

    async def _answer(self, path: re.Match[str], headers: Mapping[bytes, bytes], body: bytes) -> HttpResponse | None:
        request_id = headers.get(b"x-request-id")
        asked = Asked(
            queue=path["queue"],
            is_batch=path["batch"] is not None,
            token=headers[b"authorization"].decode("latin-1")[len(_BEARER) :].strip(),
            request_id=None if request_id is None else request_id.decode("latin-1"),
            body=body,
        )
        if asked.is_batch:
            [answer] = await asyncio.get_running_loop().run_in_executor(self._threads, _answer, [asked])
            return answer
        return await self._gathering.ask(asked.queue, asked)

    @cached_property
    def _standing_headers(self) -> list[tuple[bytes, bytes]]:
        """Those that middleware gives every answer."""
        request = HttpRequest()
        request.META["HTTP_X_FORWARDED_PROTO"] = "https"
        safe: Any = XFrameOptionsMiddleware(SecurityMiddleware(lambda _: HttpResponse()))
        response = content_security_policy(safe)(request)
        response.headers["Vary"] = "Cookie"
        del response.headers["Content-Type"]
        return list(_lines(response.headers.items()))


def _answer(asked: Sequence[Asked]) -> Sequence[HttpResponse | None]:
    """On a thread that keeps its connections. A database that fails is the long way's to tell of, or to find again."""
    try:
        return answer_together(asked)
    except DatabaseError:
        connections.close_all()
        return [None] * len(asked)


def _is_usual(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Whether this is a request that the short way knows: as far as its head says."""
    size = headers.get(b"content-length", b"")
    return (
        not scope["query_string"]
        and _UNUSUAL.isdisjoint(headers)
        and headers.get(b"authorization", b"")[: len(_BEARER)].lower() == _BEARER.encode()
        and headers.get(b"content-type", b"").decode("latin-1").split(";")[0].strip().lower() == JSON
        and size.isdigit()
        and int(size) <= config().rest.max_body_bytes
        and (not settings.SECURE_SSL_REDIRECT or headers.get(b"x-forwarded-proto") == b"https")
        and _is_ours(headers.get(b"host", b""))
    )


@lru_cache(1000)
def _is_ours(host: bytes) -> bool:
    domain, _ = split_domain_port(host.decode("latin-1"))
    allowed = settings.ALLOWED_HOSTS
    return bool(domain) and validate_host(domain, allowed)


async def _body(receive: Receive) -> bytes | None:
    """None where the client has gone."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """What was received already, and what comes behind it."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> dict[str, Any]:
        return waiting.pop() if waiting else await receive()

    return replayed


async def _send(response: HttpResponse, standing: list[tuple[bytes, bytes]], send: Send) -> None:
    length = (b"content-length", str(len(response.content)).encode())
    headers = [*_lines(response.headers.items()), length, *standing]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


def _lines(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[bytes, bytes]]:
    return ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers)
