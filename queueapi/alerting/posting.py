"""Alerts sent to a web address, over connections that reach only what they may."""

import http.client
import re
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from queueapi.alerting.errors import ChannelFailed, ChannelRefused
from queueapi.alerting.messages import Message
from queueapi.outgoing.addresses import AddressRefused
from queueapi.outgoing.connection import Answer, Connection, Target
from queueapi.outgoing.signing import MESSAGE_ID, SENT_AT, SIGNATURE, sign
from queuecore.consuming.handler_options import HIDDEN

_TEMPORARY: Final = frozenset({408, 425, 429})
_MAX_ANSWER_BYTES: Final = 64 * 1024
_PREVIEW_CHARACTERS: Final = 200
# Between the parts of paths, queries and headers: each may be repeated by itself, and with its neighbours escaped.
_SEPARATORS: Final = re.compile(r"[/?&=;,:\s]+")
# What is shorter is a word, such as `api` or `v1`.
_SHORTEST_SECRET: Final = 6


def post(
    target: Target,
    message: Message,
    body: bytes,
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    key: bytes | None = None,
) -> None:
    """The receiver knows a repetition by its `webhook-id`. ChannelFailed, ChannelRefused."""
    sent_at_s, identity = int(time.time()), f"msg_{message.id.hex}"
    ours = {"Content-Type": "application/json", "User-Agent": "Switchyard", MESSAGE_ID: identity}
    ours[SENT_AT] = str(sent_at_s)
    if key:
        ours[SIGNATURE] = sign(key, identity, sent_at_s, body)
    connection = Connection(target)
    try:
        answer = connection.exchange(
            "POST",
            body,
            {**(headers or {}), **ours},
            deadline=time.monotonic() + timeout_s,
            max_bytes=_MAX_ANSWER_BYTES,
        )
    except AddressRefused as error:
        raise ChannelRefused(error.message) from error
    except TimeoutError:
        raise ChannelFailed(
            f"{target} did not answer within {timeout_s:.3g} s; where it needs longer, raise 'timeout_ms'"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        said = _without_secrets(str(error), target, headers or {})
        raise ChannelFailed(f"{target} cannot be reached: {type(error).__name__}: {said}") from error
    finally:
        connection.close()
    _judge(target, answer, headers or {})


def _judge(target: Target, answer: Answer, headers: Mapping[str, str]) -> None:
    if 200 <= answer.status < 300:
        return
    reason, body = (
        _without_secrets(text, target, headers) for text in (answer.reason, answer.body.decode(errors="replace"))
    )
    said = " ".join(body.split())[:_PREVIEW_CHARACTERS]
    what = f"{target} answered {answer.status} {reason}" + (f": {said}" if said else "")
    if answer.status >= 500 or answer.status in _TEMPORARY:
        raise ChannelFailed(what)
    hint = "; redirects are not followed, use the address it points to" if 300 <= answer.status < 400 else ""
    raise ChannelRefused(what + hint)


def _without_secrets(text: str, target: Target, headers: Mapping[str, str]) -> str:
    """Servers repeat what they were sent, and errors are read by people who may not know it."""
    written = (target.path, *headers.values())
    parts = {part for whole in written for form in (whole, unquote(whole)) for part in _SEPARATORS.split(form)}
    secrets = sorted((part for part in parts if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)
    for secret in secrets:
        text = re.sub(re.escape(secret), HIDDEN, text, flags=re.IGNORECASE)
    return text
