"""What the framework costs without us: Django REST framework on the same server, reading the same bodies and storing
them by the same provider, without tokens, tenants, quotas, limits, routing or a look at the database.

And what the server costs alone: an ASGI application that reads a body and answers.

Run as `python -m tests.benchmarks.peers.bare_rest drf|asgi`.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Final
from uuid import UUID

PATHS: Final = {1: "/bare/messages", 500: "/bare/messages/batch"}

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def asgi(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Reads, decodes and answers 201 with nothing."""
    import json

    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if body:
        json.loads(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})


def drf() -> Any:
    """Django's own handler, no middleware, one view."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
    import django
    from django.conf import settings

    django.setup()
    settings.MIDDLEWARE = []
    settings.ROOT_URLCONF = __name__
    globals()["urlpatterns"] = _patterns()
    from django.core.handlers.asgi import ASGIHandler

    return ASGIHandler()


def _patterns() -> list[Any]:
    from django.http import HttpResponse
    from django.urls import path
    from rest_framework.request import Request
    from rest_framework.response import Response
    from rest_framework.views import APIView

    class Bare(APIView):
        authentication_classes = ()
        permission_classes = ()
        throttle_classes = ()

        def post(self, request: Request) -> Response:
            given = request.data
            return Response(_stored(given.get("messages", [given])), status=201)

    return [
        path("healthz", lambda _: HttpResponse()),
        *(path(address.removeprefix("/"), Bare.as_view()) for address in PATHS.values()),
    ]


def _stored(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    import json

    from queueapi import runtime
    from queuecore.hashing import partition_of
    from queuecore.messages import QueueMessage
    from queuecore.sending import send
    from queuecore.topics import TopicPartitionInfo

    producer = runtime.provider().producer()
    sent: list[Future[Any]] = []
    for one in given:
        entity = UUID(one["entity"])
        info = TopicPartitionInfo("bench", partition_of(entity, 4))
        sent.append(send(producer, info, QueueMessage(entity, json.dumps(one["payload"]).encode())))
    return [future.result(10)._asdict() for future in sent]


def serve(what: str) -> None:
    import uvicorn

    uvicorn.run(
        f"{__spec__.name}:{what}",
        factory=what == "drf",
        host="127.0.0.1",
        port=int(os.environ["SWITCHYARD_WEB_PORT"]),
        workers=int(os.environ["SWITCHYARD_WEB_WORKERS"]),
        log_level="warning",
        lifespan="off",
    )


if __name__ == "__main__":
    serve(sys.argv[1])
