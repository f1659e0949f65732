"""What people write into letters: another message to send, and notes."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from queueapi.actions.actor import Actor
from queueapi.actions.dead_letters import checked_reason
from queueapi.actions.ledger import record
from queueapi.actions.messages import MAX_PAYLOAD_BYTES
from queueapi.choices import LedgerAction, LetterState
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import DeadLetter, DeadLetterEdit, DeadLetterGroup
from queuecore.errors import PayloadTooLarge
from queuecore.messages import OF_SENDERS, TENANT_ID, QueueMessage

OWN_PREFIX: Final = "__queue."
MAX_HEADER_BYTES: Final = 64 * 1024


def edit_letter(
    actor: Actor, letter_id: UUID, message: QueueMessage, *, reason: str = "", seen: datetime | None = None
) -> DeadLetterEdit:
    """Let a replay send this message instead of the original, which stays as it is.

    `seen` is when the edit that this one replaces was made; None: there was none. NotChangeable where somebody else has
    edited it since, or where the letter is not open; InvalidInput and PayloadTooLarge where nobody could send that, and
    InvalidInput where a tenant's people would make it another's.
    """
    _check_message(message)
    with transaction.atomic():
        letter, edit = _open_letter(letter_id, seen)
        original = _message_of(letter)
        _check_tenant(actor, message, original)
        message = _with_its_sender(actor, message, original)
        before = _told(_message_of(edit or letter))
        edit, _ = DeadLetterEdit.objects.update_or_create(
            letter=letter,
            defaults={
                "key": message.key if isinstance(message.key, UUID) else None,
                "raw_key": message.key if isinstance(message.key, bytes) else None,
                "headers": {name: base64.b64encode(value).decode() for name, value in message.headers.items()},
                "payload": message.data,
                "edited_by": actor.name,
            },
        )
        DeadLetter.objects.filter(id=letter_id).update(is_edited=True)
        reason = checked_reason(reason)
        record(
            actor,
            LedgerAction.EDIT,
            letter_id=letter_id,
            tenant_id=letter.tenant_id,
            reason=reason,
            before=before,
            after=_told(message),
        )
    return edit


def revert_letter(actor: Actor, letter_id: UUID, *, reason: str = "", seen: datetime | None = None) -> None:
    """Let a replay send the original again. As `edit_letter`; nothing is done where there is no edit."""
    with transaction.atomic():
        letter, edit = _open_letter(letter_id, seen)
        if edit is None:
            return
        before, after = _told(_message_of(edit)), _told(_message_of(letter))
        edit.delete()
        DeadLetter.objects.filter(id=letter_id).update(is_edited=False)
        reason = checked_reason(reason)
        record(
            actor,
            LedgerAction.EDIT,
            letter_id=letter_id,
            tenant_id=letter.tenant_id,
            reason=reason,
            before=before,
            after=after,
        )


def note_letter(actor: Actor, letter_id: UUID, note: str) -> DeadLetter:
    """Write a note to a letter, instead of the one it has. An empty one takes it away."""
    note = checked_reason(note)
    with transaction.atomic():
        letter = DeadLetter.objects.select_for_update().get(id=letter_id)
        if letter.note != note:
            before, letter.note = {"note": letter.note}, note
            letter.save(update_fields=["note"])
            record(
                actor,
                LedgerAction.NOTE,
                letter_id=letter_id,
                tenant_id=letter.tenant_id,
                before=before,
                after={"note": note},
            )
    return letter


def note_group(actor: Actor, group_id: int, note: str) -> DeadLetterGroup:
    """Write a note to a group, for whoever looks at its letters next. As `note_letter`."""
    note = checked_reason(note)
    with transaction.atomic():
        group = DeadLetterGroup.objects.select_for_update().get(id=group_id)
        if group.note != note:
            before = {"note": group.note, "noted_by": group.noted_by}
            group.note, group.noted_by, group.noted_at = note, actor.name, timezone.now()
            group.save(update_fields=["note", "noted_by", "noted_at"])
            record(
                actor, LedgerAction.NOTE, group_id=group_id, count=group.letters, before=before, after={"note": note}
            )
    return group


def message_of(letter: DeadLetter) -> QueueMessage:
    """What a replay would send: the message as it was edited last, or the original."""
    edit = DeadLetterEdit.objects.filter(letter=letter).first() if letter.is_edited else None
    return _message_of(edit or letter)


def original_of(letter: DeadLetter) -> QueueMessage:
    """What was given up on, whatever it was edited to."""
    return _message_of(letter)


def _open_letter(letter_id: UUID, seen: datetime | None) -> tuple[DeadLetter, DeadLetterEdit | None]:
    """The letter, locked, and its edit. NotChangeable where this is not the time to edit it."""
    letter = DeadLetter.objects.select_for_update(of=("self",)).select_related("body").get(id=letter_id)
    if letter.state != LetterState.OPEN:
        state = letter.state_choice.label.lower()
        remedy = "restore it first" if letter.state == LetterState.DISCARDED else "only open letters can be edited"
        raise NotChangeable(f"the letter is {state}; {remedy}")
    edit = DeadLetterEdit.objects.filter(letter=letter).first()
    if edit is not None and edit.edited_at != seen:
        raise NotChangeable(
            f"{edit.edited_by} has edited the letter at {edit.edited_at:%H:%M:%S} UTC; load it anew, and edit that"
        )
    if edit is None and seen is not None:
        raise NotChangeable("somebody has gone back to the original since; load the letter anew, and edit that")
    return letter, edit


def _message_of(source: DeadLetter | DeadLetterEdit) -> QueueMessage:
    body = source.body if isinstance(source, DeadLetter) else source
    raw_key = None if source.raw_key is None else bytes(source.raw_key)
    headers = {name: base64.b64decode(value) for name, value in body.headers.items()}
    return QueueMessage(source.key if source.key is not None else raw_key, bytes(body.payload), headers)


def _told(message: QueueMessage) -> dict[str, Any]:
    """A message for the record: enough to see what was changed, and whether it is the same."""
    key = message.key.hex() if isinstance(message.key, bytes) else message.key and str(message.key)
    return {
        "key": key,
        "headers": sorted(message.headers),
        "payload_size": len(message.data),
        "payload_sha256": hashlib.sha256(message.data).hexdigest(),
    }


def _check_message(message: QueueMessage) -> None:
    if len(message.data) > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(f"the payload has {len(message.data):,} bytes; {MAX_PAYLOAD_BYTES:,} is the most")
    _check_headers(message.headers)


def _check_tenant(actor: Actor, message: QueueMessage, original: QueueMessage) -> None:
    """A tenant's people make it nobody else's message: a queue that all share handles it for whom it names."""
    named, before = message.headers.get(TENANT_ID), original.headers.get(TENANT_ID)
    if actor.tenant_id is not None and named not in (before, str(actor.tenant_id).encode()):
        raise InvalidInput(f"headers: {TENANT_ID} says whose message it is, which stays {actor.tenant_id}; leave it so")


def _with_its_sender(actor: Actor, message: QueueMessage, original: QueueMessage) -> QueueMessage:
    """Which service sent it a tenant's people are not told. So they can neither keep that nor change it."""
    if actor.tenant_id is None:
        return message
    sender = {name: value for name, value in original.headers.items() if name in OF_SENDERS}
    others = {name: value for name, value in message.headers.items() if name not in OF_SENDERS}
    return QueueMessage(message.key, message.data, others | sender)


def _check_headers(headers: Mapping[str, bytes]) -> None:
    size = sum(len(name.encode(errors="replace")) + len(value) for name, value in headers.items())
    if size > MAX_HEADER_BYTES:
        raise PayloadTooLarge(f"the headers have {size:,} bytes; {MAX_HEADER_BYTES:,} is the most")
    for name in headers:
        if not name or not name.isprintable():
            raise InvalidInput(f"a header cannot be called {name!r}; use printable characters")
        if name.startswith(OWN_PREFIX):
            raise InvalidInput(
                f"the header {name!r} is Switchyard's own, as all that begin with {OWN_PREFIX!r}; leave it out"
            )
