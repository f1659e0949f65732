"""`webhook`: each message is sent to a web address; what that answers decides whether it is done.

2xx                     done
408, 425, 429, 5xx      failed, as is no answer: it is tried again
anything else           failed for good, as trying again does not help; redirects are not followed
"""

import http.client
import threading
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote
from uuid import UUID, uuid5

from queueapi.outgoing.connection import Answer, Connection
from queueapi.outgoing.signing import MESSAGE_ID, SENT_AT, SIGNATURE, sign
from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.errors import GivenUp, QueueError
from queuecore.messages import REPLAY_ID, Record, text_header
from workers.handlers.webhook_options import WebhookOptions

FIRST_PAUSE_S: Final = 0.2
# Who asks for a longer one than this gets the message again from the queue, or not at all.
MAX_PAUSE_S: Final = 30.0

_TEMPORARY: Final = frozenset({408, 425, 429})
_PREVIEW_CHARACTERS: Final = 200
_MESSAGES: Final = UUID("0b8a0dd3-21f2-4a3c-8d5c-6f2f3a8f53d0")


class WebhookFailed(QueueError):
    """The receiver could not take the message now."""

    code = "webhook_failed"
    retryable = True


class WebhookRefused(GivenUp):
    """The receiver will not take this message, however often it is sent."""

    code = "webhook_refused"


@handler("webhook", options=WebhookOptions)
class Webhook:
    """Sends messages, over one connection for each thread that does."""

    def __init__(self, options: WebhookOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._options = options
        self._target = options.target
        self._key = options.key
        self._clock = clock
        self._of_thread = threading.local()

    def __call__(self, record: Record, context: DeliveryContext) -> None:
        for retry in range(self._options.retries):
            try:
                self._send(record, context)
            except WebhookFailed as failure:
                pause_s = _pause_s(failure, retry)
                if context.cancelled or pause_s >= min(_left_s(context), MAX_PAUSE_S):
                    raise
                time.sleep(pause_s)
            else:
                return
        self._send(record, context)

    def _send(self, record: Record, context: DeliveryContext) -> None:
        limit_s = min(self._options.timeout_ms / 1000, _left_s(context))
        try:
            answer = self._connection().exchange(
                self._options.method,
                record.data,
                self._headers(record, context),
                deadline=time.monotonic() + limit_s,
                max_bytes=self._options.max_response_bytes,
            )
        except TimeoutError:
            raise WebhookFailed(
                f"{self._target} did not answer within {limit_s:.3g} s; where it needs longer, raise 'timeout_ms'"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise WebhookFailed(f"{self._target} cannot be reached: {type(error).__name__}: {error}") from error
        self._judge(answer)

    def _judge(self, answer: Answer) -> None:
        if 200 <= answer.status < 300:
            return
        said = " ".join(answer.body.decode(errors="replace").split())[:_PREVIEW_CHARACTERS]
        what = f"{self._target} answered {answer.status} {answer.reason}" + (f": {said}" if said else "")
        if answer.status >= 500 or answer.status in _TEMPORARY:
            when = f"; it asks to be tried again after {answer.retry_after}" if answer.retry_after else ""
            raise WebhookFailed(what + when, status=answer.status, retry_after=answer.retry_after)
        hint = "; redirects are not followed, use the address it points to" if 300 <= answer.status < 400 else ""
        raise WebhookRefused(what + hint, status=answer.status)

    def _headers(self, record: Record, context: DeliveryContext) -> Mapping[str, str]:
        identity, sent_at_s = _message_id(record), self._clock.now_ms() // 1000
        headers = {
            **self._options.headers,
            "Content-Type": self._options.content_type,
            "User-Agent": "Switchyard",
            MESSAGE_ID: identity,
            SENT_AT: str(sent_at_s),
            **_origin(record, context),
        }
        if self._key:
            headers[SIGNATURE] = sign(self._key, identity, sent_at_s, record.data)
        return headers

    def _connection(self) -> Connection:
        try:
            kept: Connection = self._of_thread.connection
        except AttributeError:
            kept = self._of_thread.connection = Connection(self._target)
        return kept


def _message_id(record: Record) -> str:
    """The same each time the message is delivered, and no other message's."""
    place = f"{record.topic}[{record.partition}]@{record.offset}/{record.timestamp_ms}"
    return f"msg_{uuid5(_MESSAGES, place).hex}"


def _origin(record: Record, context: DeliveryContext) -> dict[str, str]:
    """Where the message is, for whoever looks for it. What producers may have written is quoted: it cannot end a
    header."""
    said = {
        "queue": context.queue,
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "attempt": str(context.attempt),
        "tenant": context.tenant_id,
        "replay": text_header(record.headers, REPLAY_ID),
        "letter": context.replayed_letter,
    }
    return {f"switchyard-{name}": quote(value, safe="") for name, value in said.items() if value is not None}


def _left_s(context: DeliveryContext) -> float:
    return float("inf") if context.remaining_s is None else context.remaining_s


def _pause_s(failure: WebhookFailed, retry: int) -> float:
    """As long as the receiver asks for, in seconds; else twice as long each time."""
    asked = str(failure.fields.get("retry_after", ""))
    return float(asked) if asked.isascii() and asked.isdigit() else FIRST_PAUSE_S * 2**retry
