"""Which message a topic carries, and what a change of a message type would mean."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from django.db.models import QuerySet

from queueapi.change_plans import NOTHING, Change
from queueapi.models import MessageType, MessageTypeTopic, MessageTypeVersion, Queue
from queueapi.selectors.topics import stream_of
from queuecore.messagetypes import Incompatibility, MessageForm, find_incompatibilities, load_form


@dataclass(frozen=True, slots=True)
class MessageTypePlan:
    """What a change would do. `version` is the one there is after it."""

    version: int
    incompatibilities: tuple[Incompatibility, ...]
    topics_added: tuple[str, ...]
    topics_removed: tuple[str, ...]
    is_new_version: bool

    @property
    def summary(self) -> str:
        if not self.is_compatible:
            return f"{NOTHING}: messages would be misread"
        told = [f"it would have version {self.version}"] if self.is_new_version else []
        if number := len(self.topics_added) + len(self.topics_removed):
            told.append(f"{number} topic{'' if number == 1 else 's'} would change")
        return " and ".join(told) or NOTHING

    @property
    def changes(self) -> tuple[Change, ...]:
        version = (Change("version", self.version - 1, self.version),) if self.is_new_version else ()
        added = (Change(f"topic {one} carries it", before=False, after=True) for one in self.topics_added)
        removed = (Change(f"topic {one} carries it", before=True, after=False) for one in self.topics_removed)
        return (*version, *added, *removed)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{one.where}: {one.why}" for one in self.incompatibilities)

    @property
    def is_compatible(self) -> bool:
        return not self.incompatibilities


def message_types() -> QuerySet[MessageType]:
    return MessageType.objects.prefetch_related("topics")


def form_of_queue(queue: Queue) -> MessageForm | None:
    """What its messages are, by the newest version; None where nobody said."""
    return form_of_topic(stream_of(queue))


def form_of_topic(topic: str) -> MessageForm | None:
    found = (
        MessageTypeTopic.objects.filter(topic=topic)
        .values_list("message_type_id", "message_type__version", "message_type__message")
        .first()
    )
    return _form(*found) if found else None


def plan_change(message_type: MessageType, descriptors: bytes | None, topics: Iterable[str] | None) -> MessageTypePlan:
    """What it would mean to have these instead; what is None stays. ConfigurationError for a description that cannot be
    used."""
    newest = bytes(message_type.newest.descriptors)
    is_same = descriptors is None or newest == descriptors
    before = load_form(newest, message_type.message)
    after = before if is_same else load_form(descriptors or b"", message_type.message)
    now = {topic.topic for topic in message_type.topics.all()}
    then = now if topics is None else set(topics)
    return MessageTypePlan(
        version=message_type.version + (not is_same),
        incompatibilities=tuple(find_incompatibilities(before, after)),
        topics_added=tuple(sorted(then - now)),
        topics_removed=tuple(sorted(now - then)),
        is_new_version=not is_same,
    )


@lru_cache(maxsize=64)
def _form(message_type_id: UUID, version: int, message: str) -> MessageForm:
    """A version never changes, so it is loaded once in a process."""
    row = MessageTypeVersion.objects.get(message_type_id=message_type_id, version=version)
    return load_form(bytes(row.descriptors), message)
