"""Alert channels: created, changed, deleted, and tried."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from queueapi.actions.actor import Actor, audit
from queueapi.actions.json_checks import check_json
from queueapi.actions.row_checks import check_names, check_row, storing
from queueapi.alerting.channels import entered_options, open_channel, shown_options
from queueapi.alerting.messages import TEST, Message, Notice
from queueapi.change_plans import shown
from queueapi.choices import ChannelKind
from queueapi.errors import InvalidInput
from queueapi.models import AlertChannel
from queuecore.errors import QueueError

CHANNEL_FIELDS: Final = ("name", "kind", "options", "enabled")


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a test: `error` says why it was not delivered."""

    delivered: bool
    error: str
    took_ms: int


def create_channel(actor: Actor, **fields: Any) -> AlertChannel:
    """InvalidInput says what to enter instead."""
    check_names("channel", fields, CHANNEL_FIELDS)
    channel = AlertChannel(**fields)
    channel.options = _options(channel.kind, channel.options, {})
    check_row(channel)
    with transaction.atomic():
        with storing(f"channel {channel.name}"):
            channel.save(force_insert=True)
        audit(actor, "create", "alert_channel", channel.id, after=told(channel))
    return channel


def change_channel(actor: Actor, channel: AlertChannel, **changes: Any) -> AlertChannel:
    """The channel as it is then: what is waiting goes there too. A secret that comes back hidden stays as it was. Its
    kind never changes. InvalidInput says what to enter instead."""
    check_names("channel", changes, [name for name in CHANNEL_FIELDS if name != "kind"])
    with transaction.atomic():
        row = AlertChannel.objects.select_for_update().get(pk=channel.pk)
        old, secret = told(row), dict(row.options)
        for name, value in changes.items():
            setattr(row, name, _options(row.kind, value, row.options) if name == "options" else value)
        check_row(row)
        new = told(row)
        # A secret that changed looks as before.
        names = [name for name in new if old[name] != new[name] or (name == "options" and secret != row.options)]
        if names:
            row.version += 1
            with storing(f"channel {row.name}"):
                row.save()
            before, after = ({name: values[name] for name in names} for values in (old, new))
            audit(actor, "change", "alert_channel", row.id, before=before, after=after)
    return row


def delete_channel(actor: Actor, channel: AlertChannel) -> None:
    """Rules tell it nothing more, and what waits for it is not sent."""
    with transaction.atomic():
        kept = AlertChannel.objects.select_for_update().get(pk=channel.pk)
        audit(actor, "delete", "alert_channel", kept.id, before=told(kept))
        for name in ("rules", "escalating_rules"):
            getattr(kept, name).update(version=F("version") + 1)
        kept.delete()


def test_channel(actor: Actor, channel: AlertChannel) -> Trial:
    """Send a message there now, whatever rules say, and tell what came of it."""
    began, error = time.monotonic(), ""
    try:
        open_channel(channel.kind, channel.options).send(_greeting(actor))
    except QueueError as failure:
        error = failure.message
    trial = Trial(not error, error, round((time.monotonic() - began) * 1000))
    after = {"delivered": trial.delivered, "error": trial.error}
    audit(actor, "test", "alert_channel", channel.id, after=after)
    return trial


def told(channel: AlertChannel) -> dict[str, Any]:
    """As people may see it."""
    return {**shown(channel, CHANNEL_FIELDS), "options": shown_options(channel.kind, channel.options)}


def _options(kind: str, entered: Any, before: Mapping[str, Any]) -> dict[str, object]:
    if kind not in ChannelKind.values:
        raise InvalidInput(f"kind: there is no {kind!r}; choose one of {', '.join(ChannelKind.values)}")
    if not isinstance(entered, dict):
        raise InvalidInput("options: give an object, such as {'url': 'https://example.org/hook'}")
    check_json("options", entered)
    return entered_options(kind, entered, before)


def _greeting(actor: Actor) -> Message:
    now = timezone.now()
    notice = Notice(
        notice=TEST,
        alert=str(uuid4()),
        rule="Test",
        severity="info",
        metric="",
        subject="this channel",
        tenant=None,
        value=0,
        unit="",
        threshold=0,
        reason=f"{actor.name} wants to see whether alerts arrive here; they do",
        since=now.isoformat(),
        path="/",
    )
    return Message(uuid4(), now, (notice,))
