"""Messages as server-sent events. The web server is asynchronous: a stream takes no thread while nothing comes.

A reader is for one thread, so each stream has one that looks, twice a second.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from queueapi.errors import TooManyTails
from queueapi.models import Queue
from queueapi.rest.v1.message_serializers import StoredMessageSerializer
from queueapi.selectors.message_scans import MessageQuery
from queueapi.selectors.message_shapes import MessageShaper
from queueapi.selectors.message_tails import Looked, MessageTail, TailOptions
from queuecore.errors import QueueError

MAX_TAILS: Final = 20

_EVERY_S: Final = 0.5
_HEARTBEAT_S: Final = 10.0

_free = threading.BoundedSemaphore(MAX_TAILS)


def open_tail(
    queue: Queue, partitions: Sequence[int], query: MessageQuery, shaper: MessageShaper, options: TailOptions
) -> StreamingHttpResponse:
    """TooManyTails where as many are open in this process as may."""
    stream = TailStream(queue, partitions, query, shaper, options)
    response = StreamingHttpResponse(stream, content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    # Proxies that keep answers back until they are whole would keep this one for ever.
    response["X-Accel-Buffering"] = "no"
    return response


class TailStream:
    """The bytes of one response. It ends by itself, or when the client goes; `close` is for whoever never began."""

    def __init__(
        self, queue: Queue, partitions: Sequence[int], query: MessageQuery, shaper: MessageShaper, options: TailOptions
    ) -> None:
        if not _free.acquire(blocking=False):
            raise TooManyTails(f"{MAX_TAILS} clients follow messages here already; end one of them, or browse instead")
        self._is_open = True
        self._closing = threading.Lock()
        self._shaper = shaper
        self._options = options
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tail")
        try:
            self._tail = self._thread.submit(MessageTail, queue, partitions, query).result()
        except BaseException:
            self._release()
            raise

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events()

    def close(self) -> None:
        """Repeatable, from any thread."""
        if self._release():
            self._thread.submit(self._tail.close)
            self._thread.shutdown(wait=False)

    def _release(self) -> bool:
        with self._closing:
            was_open, self._is_open = self._is_open, False
        if was_open:
            _free.release()
        return was_open

    async def _events(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.seconds
        told_at = loop.time()
        most = max(1, round(self._options.rate * _EVERY_S))
        try:
            yield b": following\n\n"
            while (left := deadline - loop.time()) > 0:
                looked = await loop.run_in_executor(self._thread, self._tail.look, most)
                if events := self._told(looked):
                    yield events
                    told_at = loop.time()
                elif loop.time() - told_at >= _HEARTBEAT_S:
                    # Else nobody would notice that the client is gone.
                    yield b": heartbeat\n\n"
                    told_at = loop.time()
                await asyncio.sleep(min(_EVERY_S, left))
            yield _event("end", {"reason": f"{self._options.seconds} s are over; ask again to go on"})
        except QueueError as error:
            yield _event("error", {"code": error.code, "detail": error.message, "retryable": error.retryable})
        finally:
            self.close()

    def _told(self, looked: Looked) -> bytes:
        events = [_event("skipped", {"messages": looked.skipped})] if looked.skipped else []
        for partition, record in looked.found:
            shown = StoredMessageSerializer(self._shaper.show(partition, record)).data
            events.append(_event("message", shown, f"{partition}:{record.offset}"))
        return b"".join(events)


def _event(name: str, data: Any, event_id: str = "") -> bytes:
    """One event. JSON has no line breaks but in its texts, where they are escaped."""
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {name}\ndata: ".encode() + JSONRenderer().render(data) + b"\n\n"
