"""A request's way from its handler to an answer that is stored."""

import logging
from collections import deque
from typing import Final

from google.protobuf.message import Message

from queuecore.clock import Clock
from queuecore.encoding import ErrorReply, encode
from queuecore.errors import InvalidMessage, PayloadTooLarge, QueueError, RequestFailed
from queuecore.messages import REQUEST_ID, QueueMessage
from queuecore.providers.base import Brief, QueueProducer, Sending
from queuecore.requests.progress import Progress
from queuecore.requests.request import Outcome, Reply, Request

logger = logging.getLogger(__name__)

HANDLER_FAILED: Final = "handler_failed"
HANDLER_TIMED_OUT: Final = "handler_timed_out"
ANSWER_REFUSED: Final = "answer_refused"
# A named tuple's own runs in Python, and tens of thousands are made every second.
_new: Final = tuple.__new__
# So many answers are sent together at most: who asked for the first waits for the last of them.
_TOGETHER: Final = 64
# An answer need not hold more of what went wrong than a person would read.
_MAX_MESSAGE: Final = 2_000


class Answering:
    """Safe from any thread. Of a handler that returns and the watch that ends it, who takes the request out of
    `working` answers it; nobody else can then."""

    def __init__(self, producer: QueueProducer, progress: Progress, clock: Clock) -> None:
        self._producer = producer
        self._progress = progress
        self._clock = clock
        # By themselves, not by their ids: a request may have been sent twice.
        self.working: set[Request] = set()
        # Those whose answers the provider could not take, to be sent again.
        self._unsent: deque[Request] = deque()
        # Those whose answers are made, and wait for others to be sent with.
        self._ready: deque[Request] = deque()
        # The first of them when it was last looked.
        self._overdue: Request | None = None
        self._told = self._stored

    def begin(self, request: Request) -> bool:
        """Whether it is worth it: not where nobody waits any more."""
        request.started_at = now = self._clock.monotonic()
        if now >= request.deadline:
            self._end(request, Outcome.EXPIRED)
            return False
        self.working.add(request)
        return True

    def succeed(self, request: Request, reply: Reply, *, waits: bool = False) -> bool:
        """False where it was ended meanwhile: its handler came too late. An answer that waits is sent together with
        others, which costs half as much: by `send_ready`, or when there are many."""
        if not self._is_mine(request):
            return False
        try:
            message = _answer(request, reply)
        except QueueError as error:
            self._answer(request, _error(request, _told(error)), Outcome.FAILED)
            return True
        if not waits:
            self._answer(request, message, Outcome.ANSWERED)
            return True
        request.outcome, request.answer = Outcome.ANSWERED, message
        self._ready.append(request)
        if len(self._ready) >= _TOGETHER:
            self.send_ready()
        return True

    def send_ready(self) -> None:
        """Answers that waited for each other."""
        ready, told = self._ready, self._told
        sends: list[Sending] = []
        while ready:
            try:
                request = ready.popleft()
            except IndexError:
                # Another thread sends it.
                break
            if request.answer is not None:
                sends.append((request.answer_to, request.answer, _new(Brief, (told, request))))
        if sends:
            self._producer.send_many(sends)

    def send_overdue(self) -> None:
        """For the thread that reads: likewise, where the first of them has waited since the last call. A handler that
        was expected to be quick, and is not, holds nobody else's answer back for long."""
        try:
            first = self._ready[0]
        except IndexError:
            first = None
        if first is not None and first is self._overdue:
            self.send_ready()
        self._overdue = first

    def fail(self, request: Request, error: BaseException) -> bool:
        """As `succeed`."""
        if not self._is_mine(request):
            return False
        reply = _told(error)
        logger.info("request %s failed, and its sender is told: %s", request.id, reply.message)
        self._answer(request, _error(request, reply), Outcome.FAILED)
        return True

    def overrun(self, request: Request, timeout_ms: int) -> bool:
        """End one that takes too long. False where it has ended meanwhile."""
        if not self._is_mine(request):
            return False
        request.cancelled = True
        if self._clock.monotonic() >= request.deadline:
            self._end(request, Outcome.TIMED_OUT)
            return True
        reply = ErrorReply(HANDLER_TIMED_OUT, f"the handler took longer than {timeout_ms} ms; it may still be at work")
        self._answer(request, _error(request, reply), Outcome.TIMED_OUT)
        return True

    def send_again(self) -> None:
        """Answers that could not be stored, as long as somebody waits for them."""
        for _ in range(len(self._unsent)):
            request = self._unsent.popleft()
            if request.remaining_s and request.answer is not None:
                self._send(request, request.answer)
            else:
                self._end(request, Outcome.UNDELIVERABLE)

    def _is_mine(self, request: Request) -> bool:
        try:
            self.working.remove(request)
        except KeyError:
            return False
        return True

    def _answer(self, request: Request, message: QueueMessage, outcome: Outcome) -> None:
        request.outcome = outcome
        self._send(request, message)

    def _send(self, request: Request, message: QueueMessage) -> None:
        request.answer = message
        try:
            self._producer.send(request.answer_to, message, _new(Brief, (self._told, request)))
        except QueueError as error:
            self._stored(request, error)

    def _stored(self, request: Request, error: QueueError | None) -> None:
        if error is None:
            self._progress.end(request)
        elif error.retryable:
            self._unsent.append(request)
        elif isinstance(error, PayloadTooLarge | InvalidMessage) and request.outcome is Outcome.ANSWERED:
            reply = ErrorReply(ANSWER_REFUSED, f"the answer could not be stored: {error}")
            self._answer(request, _error(request, reply), Outcome.FAILED)
        else:
            logger.info("the answer to request %s is dropped, as it cannot be stored: %s", request.id, error)
            self._end(request, Outcome.UNDELIVERABLE)

    def _end(self, request: Request, outcome: Outcome) -> None:
        request.outcome = outcome
        self._progress.end(request)


def _answer(request: Request, reply: Reply) -> QueueMessage:
    """InvalidMessage for what no answer can be made of."""
    headers = {REQUEST_ID: request.request_id}
    if type(reply) is bytes:
        return _new(QueueMessage, (None, reply, headers))
    if reply is None:
        return QueueMessage(None, b"", headers)
    if isinstance(reply, QueueMessage):
        return QueueMessage(reply.key, reply.data, {**reply.headers, **headers})
    if isinstance(reply, Message):
        return encode(reply, headers=headers)
    if isinstance(reply, bytes):
        return QueueMessage(None, bytes(reply), headers)
    raise InvalidMessage(
        f"the handler returned {type(reply).__name__}; return bytes, a message of Protocol Buffers, a QueueMessage, or "
        "nothing"
    )


def _error(request: Request, reply: ErrorReply) -> QueueMessage:
    return QueueMessage(None, b"", {REQUEST_ID: request.request_id, **reply.headers()})


def _told(error: BaseException) -> ErrorReply:
    """What the sender is told: errors of ours by their code, RequestFailed by the code it was raised with."""
    if isinstance(error, RequestFailed):
        return ErrorReply(error.error_code, error.message[:_MAX_MESSAGE])
    if isinstance(error, QueueError):
        return ErrorReply(error.code, error.message[:_MAX_MESSAGE])
    return ErrorReply(HANDLER_FAILED, _described(error)[:_MAX_MESSAGE])


def _described(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        # One that cannot even say what it is must not cost its sender the answer.
        logger.exception("a handler failed with %s, which cannot be told as text", name)
        return name
