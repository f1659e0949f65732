"""Message types: entered, brought to a next version that can be read as the one before, and removed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import IntegrityError, transaction

from queueapi.actions.actor import Actor, audit
from queueapi.actions.json_checks import check_json
from queueapi.errors import Incompatible, InvalidInput
from queueapi.models import MessageType, MessageTypeTopic, MessageTypeVersion
from queueapi.selectors.message_types import MessageTypePlan, plan_change
from queuecore.errors import ConfigurationError, InvalidName
from queuecore.messagetypes import compile_sources, load_form
from queuecore.topics import check_topic

MAX_TOPICS: Final = 1_000

_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")
_LONGEST_MESSAGE: Final = 255


@dataclass(frozen=True, slots=True)
class Description:
    """Of messages: as protoc describes them, and the sources, where these were given."""

    descriptors: bytes
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Mapping[str, str]) -> "Description":
        """InvalidInput names the file and line that cannot be understood."""
        check_json("files", dict(files))
        try:
            return cls(compile_sources(files), dict(files))
        except ConfigurationError as error:
            raise InvalidInput(f"files: {error.message}") from error


def create_message_type(
    actor: Actor, *, name: str, message: str, description: Description, topics: Iterable[str] = ()
) -> MessageType:
    """InvalidInput says what to enter instead."""
    wanted = plan_new_message_type(name=name, message=message, description=description, topics=topics).topics_added
    created = MessageType(name=name, message=message)
    with transaction.atomic():
        _insert(created)
        _add_version(actor, created, description)
        _set_topics(created, added=wanted)
        audit(actor, "create", "message_type", created.id, after=_told(created, wanted))
    return created


def plan_new_message_type(
    *, name: str, message: str, description: Description, topics: Iterable[str] = ()
) -> MessageTypePlan:
    """Changes nothing. InvalidInput as for `create_message_type`."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"name: {name[:30]!r} cannot be; enter 1 to 100 ASCII letters, digits, '.', '_' or '-'")
    if MessageType.objects.filter(name__iexact=name).exists():
        raise _taken(name)
    check_description(description, message)
    wanted = check_topics(topics)
    _check_free(wanted)
    return MessageTypePlan(1, (), tuple(wanted), (), is_new_version=True)


def change_message_type(
    actor: Actor,
    message_type: MessageType,
    *,
    description: Description | None = None,
    topics: Iterable[str] | None = None,
) -> MessageTypePlan:
    """What was done. What is left out stays. Incompatible, with nothing changed, where messages of the one version
    would be misread as the other."""
    wanted = None if topics is None else check_topics(topics)
    with transaction.atomic():
        row = MessageType.objects.select_for_update().get(pk=message_type.pk)
        plan = plan_message_type(row, description=description, topics=wanted)
        if not plan.is_compatible:
            raise incompatible(row, plan)
        before = _told(row, [topic.topic for topic in row.topics.all()])
        if plan.is_new_version and description is not None:
            row.version = plan.version
            row.save()
            _add_version(actor, row, description)
        _set_topics(row, added=plan.topics_added, removed=plan.topics_removed)
        after = _told(row, list(row.topics.values_list("topic", flat=True)))
        if before != after:
            audit(actor, "change", "message_type", row.pk, before=before, after=after)
    return plan


def plan_message_type(
    message_type: MessageType,
    *,
    description: Description | None = None,
    topics: Iterable[str] | None = None,
) -> MessageTypePlan:
    """Changes nothing. InvalidInput says what cannot be."""
    wanted = None if topics is None else check_topics(topics)
    try:
        return plan_change(message_type, description.descriptors if description else None, wanted)
    except ConfigurationError as error:
        raise InvalidInput(error.message) from error


def delete_message_type(actor: Actor, message_type: MessageType) -> None:
    """Its topics carry what they carry; nobody knows what that is any more."""
    with transaction.atomic():
        topics = list(message_type.topics.values_list("topic", flat=True))
        audit(actor, "delete", "message_type", message_type.id, before=_told(message_type, topics))
        message_type.delete()


def check_description(description: Description, message: str) -> None:
    """InvalidInput."""
    if not 1 <= len(message) <= _LONGEST_MESSAGE or "\0" in message:
        raise InvalidInput("message: give the whole name of a message in the description, such as shop.Order")
    try:
        load_form(description.descriptors, message)
    except ConfigurationError as error:
        raise InvalidInput(error.message) from error


def check_topics(topics: Iterable[str]) -> list[str]:
    """Each once, in order. InvalidInput for what can be no topic."""
    wanted = sorted(set(topics))
    if len(wanted) > MAX_TOPICS:
        raise InvalidInput(f"topics: {len(wanted)} were given; {MAX_TOPICS} is the most")
    for topic in wanted:
        try:
            check_topic(topic)
        except InvalidName as error:
            raise InvalidInput(f"topics: {error.message}") from error
    return wanted


def incompatible(message_type: MessageType, plan: MessageTypePlan) -> Incompatible:
    told = [f"{one.where}: {one.why}" for one in plan.incompatibilities]
    return Incompatible(
        f"messages of {message_type.name} would be misread: {told[0]}"
        + (f"; and {len(told) - 1} more, see errors" if told[1:] else ""),
        fields={"description": told},
    )


def _insert(message_type: MessageType) -> None:
    try:
        with transaction.atomic():
            message_type.save(force_insert=True)
    except IntegrityError as error:
        raise _taken(message_type.name) from error


def _add_version(actor: Actor, message_type: MessageType, description: Description) -> None:
    MessageTypeVersion.objects.create(
        message_type=message_type,
        version=message_type.version,
        descriptors=description.descriptors,
        files=dict(description.files),
        created_by=actor.name,
    )


def _set_topics(message_type: MessageType, *, added: Iterable[str], removed: Iterable[str] = ()) -> None:
    """InvalidInput where one carries another type."""
    message_type.topics.filter(topic__in=list(removed)).delete()
    added = list(added)
    _check_free(added)
    try:
        with transaction.atomic():
            MessageTypeTopic.objects.bulk_create(
                MessageTypeTopic(topic=one, message_type=message_type) for one in added
            )
    except IntegrityError as error:
        raise InvalidInput("topics: somebody else has just given one of them another type; look at it") from error


def _check_free(topics: Iterable[str]) -> None:
    taken = MessageTypeTopic.objects.filter(topic__in=list(topics)).select_related("message_type").first()
    if taken is not None:
        raise InvalidInput(
            f"topics: {taken.topic} carries messages of type {taken.message_type.name}; take it from there first"
        )


def _taken(name: str) -> InvalidInput:
    return InvalidInput(f"name: there is a message type {name} already; change that one")


def _told(message_type: MessageType, topics: Iterable[str]) -> dict[str, Any]:
    return {
        "name": message_type.name,
        "message": message_type.message,
        "version": message_type.version,
        "topics": sorted(topics),
    }
