"""A batch of messages as it was sent, read in one pass: field by field it would cost more than to store it."""

import json
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request

from queueapi.actions.message_batches import MAX_BATCH, OutgoingMessage, check_outgoing
from queueapi.config import config
from queueapi.models import Queue, Tenant
from queueapi.names import unknown_name
from queueapi.rest.short_bodies import read_many
from queuecore.errors import InvalidMessage
from queuecore.messagetypes import MessageForm

_FIELDS: Final = {"tenant", "entity", "payload", "payload_base64"}


@dataclass(frozen=True, slots=True)
class Senders:
    """Whose messages somebody may send: of the tenants they know of, or of their own, which need not be named."""

    known: QuerySet[Tenant]
    own: UUID | None


def read_batch(
    queue: Queue, request: Request, message_form: MessageForm | None, senders: Senders
) -> list[OutgoingMessage]:
    """All of them, or ValidationError with what is wrong with each that is. With a form, JSON is encoded by it, else it
    is as it was sent."""
    sent = None if message_form else read_many(request.body, config().rest.max_json_depth, senders.own)
    if sent is not None and not any(check_outgoing(queue, message) for message in sent):
        if wrong := _unknown_tenants(sent, senders.known):
            raise ValidationError({"messages": wrong})
        return sent
    return _read_each(queue, request.data, message_form, senders)


def _read_each(queue: Queue, body: object, message_form: MessageForm | None, senders: Senders) -> list[OutgoingMessage]:
    """One by one, where something is wrong with one or the other, or unusual."""
    if isinstance(body, dict) and (wrong_names := [name for name in body if name != "messages"]):
        raise ValidationError({name: [unknown_name("field", name, ["messages"])] for name in wrong_names})
    given = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_BATCH:
        raise ValidationError({"messages": [f"give a list of 1 to {MAX_BATCH} messages"]})
    messages: list[OutgoingMessage] = []
    wrong: dict[str, list[str]] = {}
    for index, one in enumerate(given):
        try:
            messages.append(_read(queue, one, message_form, senders.own))
        except (ValueError, InvalidMessage) as error:
            wrong[str(index)] = [str(error)]
        except RecursionError as error:
            raise ParseError(f"message {index} is nested too deeply; flatten it, or use payload_base64") from error
    if not wrong:
        wrong = _unknown_tenants(messages, senders.known)
    if wrong:
        raise ValidationError({"messages": wrong})
    return messages


def _read(queue: Queue, one: object, message_form: MessageForm | None, own: UUID | None) -> OutgoingMessage:
    """ValueError says what is wrong."""
    if not isinstance(one, dict):
        raise ValueError("a message is an object with tenant, entity and payload")
    if unknown := one.keys() - _FIELDS:
        raise ValueError(f"there is no field {min(unknown)!r}; there are: {', '.join(sorted(_FIELDS))}")
    tenant = own if own is not None and "tenant" not in one else _uuid(one, "tenant")
    message = OutgoingMessage(tenant, _uuid(one, "entity"), _data(one, message_form))
    if why := check_outgoing(queue, message):
        raise ValueError(why)
    return message


def _uuid(one: dict[str, Any], name: str) -> UUID:
    try:
        return UUID(one[name])
    except (KeyError, ValueError, TypeError, AttributeError):
        raise ValueError(f"{name}: give a UUID") from None


def _data(one: dict[str, Any], message_form: MessageForm | None) -> bytes:
    if ("payload" in one) == ("payload_base64" in one):
        raise ValueError("give either payload or payload_base64")
    if "payload" in one:
        return json.dumps(one["payload"]).encode() if message_form is None else message_form.from_json(one["payload"])
    try:
        return b64decode(one["payload_base64"], validate=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"payload_base64: this is not base64: {error}") from None


def _unknown_tenants(messages: Iterable[OutgoingMessage], tenants: QuerySet[Tenant]) -> dict[str, list[str]]:
    """With one question, however many messages and tenants there are."""
    named = {message.tenant for message in messages}
    known = set(tenants.filter(id__in=named).values_list("id", flat=True))
    return {
        str(index): [f"tenant: there is no tenant {message.tenant}"]
        for index, message in enumerate(messages)
        if message.tenant not in known
    }
