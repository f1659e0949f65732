"""Requests on threads that stay.

Django's own handler gives each request a new thread, and goes back and forth between that and the event loop for every
middleware. What a thread has is then made anew each time: its connections to the database above all, of which one to
SQLite takes longer than most requests.
"""

from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Final

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.db import connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase

# So many wait for requests. What comes beyond them has threads that end with it.
KEPT: Final = 16


class ServingThread(ThreadPoolExecutor):
    """The one thread that all of a request runs on but its input and output."""

    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix="serving")
        self.is_busy = False


_current: ContextVar[ServingThread] = ContextVar("serving_thread")


class ThreadKeepingHandler(ASGIHandler):
    """Middleware and view of a request run in one go, on a thread that served others before. For one event loop."""

    def __init__(self) -> None:
        # Not its parent's, which would have middleware go back and forth.
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self._idle: list[ServingThread] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        thread = self._idle.pop() if self._idle else ServingThread()
        _current.set(thread)
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)
        finally:
            self._give_back(thread)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self._get_response_on)(_current.get(), request)

    def _get_response_on(self, thread: ServingThread, request: HttpRequest) -> HttpResponseBase:
        thread.is_busy = True
        try:
            return self.get_response(request)
        finally:
            thread.is_busy = False

    def _give_back(self, thread: ServingThread) -> None:
        """One whose client has gone may still be at work: nobody should wait for that."""
        if not thread.is_busy and len(self._idle) < KEPT:
            self._idle.append(thread)
        else:
            # What it has open ends with it.
            thread.submit(connections.close_all)
            thread.shutdown(wait=False)
