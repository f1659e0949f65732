"""What channels say: the same notices as plain text, for programs, and for chats."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict
from uuid import UUID

from queueapi.alerting.links import address_of

# One message holds no more: of ten thousand alerts nobody reads ten thousand messages.
MOST_IN_ONE: Final = 100
# What is told to see whether a channel works.
TEST: Final = "test"

_CHATTED: Final = 20
_MARKS: Final = {"fired": "🔴", "escalated": "🚨", "resolved": "✅", TEST: "👋"}


class Notice(TypedDict):
    """What is told of one alert, as it was then. `path` is that of the page that explains it."""

    notice: str
    alert: str
    rule: str
    severity: str
    metric: str
    subject: str
    tenant: str | None
    value: float
    unit: str
    threshold: float
    reason: str
    since: str
    path: str


@dataclass(frozen=True, slots=True)
class Message:
    """To one channel. Sent again, it has the same id."""

    id: UUID
    at: datetime
    notices: tuple[Notice, ...]


def subject_line(message: Message) -> str:
    first, more = message.notices[0], len(message.notices) - 1
    line = f"[Switchyard] {_headline(first)}" + (f", and {more} more" if more else "")
    # One line, whatever names hold: a second would be another header.
    return " ".join(line.split())


def plain_text(message: Message) -> str:
    parts = [f"{_headline(one)}\n{one['reason']}\n{_address(one)}" for one in message.notices]
    return "\n\n".join(parts) + "\n"


def webhook_body(message: Message) -> bytes:
    body = {
        "type": "alerts",
        "timestamp": message.at.isoformat(),
        "alerts": [_for_programs(one) for one in message.notices],
    }
    return json.dumps(body).encode()


def slack_body(message: Message) -> bytes:
    return json.dumps({"text": "\n".join(_chat_lines(message))}).encode()


def _chat_lines(message: Message) -> Iterator[str]:
    for one in message.notices[:_CHATTED]:
        mark, said = _MARKS.get(one["notice"], ""), _escaped(one["reason"])
        yield f"{mark} *{_escaped(_headline(one))}*\n{said} (<{_address(one)}|look>)"
    if (more := len(message.notices) - _CHATTED) > 0:
        yield f"and {more} more: {address_of('/')}"


def _for_programs(one: Notice) -> dict[str, Any]:
    told: dict[str, Any] = dict(one)
    del told["path"]
    return {**told, "url": _address(one)}


def _headline(one: Notice) -> str:
    return f"{one['severity'].upper()} {one['notice']}: {one['rule']}, {one['subject']}"


def _address(one: Notice) -> str:
    return address_of(one["path"])


def _escaped(text: str) -> str:
    """As Slack wants it: names may hold anything."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
