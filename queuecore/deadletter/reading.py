"""Letters as they are found in their topics, with what is stored apart from them."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from queuecore.deadletter.envelope import FailureStory, original_headers, read_story
from queuecore.deadletter.packing import unpack_message
from queuecore.deadletter.payloads import Stored, is_whole, load_body
from queuecore.errors import InvalidMessage, PayloadMissing
from queuecore.messages import QueueMessage, Record
from queuecore.providers.base import Provider, QueueReader
from queuecore.topics import TopicPartitionInfo

_READ_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up.

    record       as it is stored in the dead-letter topic
    story        where it came from, what went wrong, how often it was tried
    message      as it was before it was given up; without what is missing where it is not complete
    is_complete  whether the message is all there: what was too large for its letter may be gone before it
    """

    record: Record
    story: FailureStory
    message: QueueMessage
    is_complete: bool


def read_letters(provider: Provider, partitions: Iterable[TopicPartitionInfo]) -> Iterator[DeadLetter]:
    """All letters of these partitions of dead-letter topics, each partition's from the oldest on."""
    places = [info.place for info in partitions]
    at = dict(provider.admin().beginning_offsets(places))
    with closing(provider.reader()) as reader:
        for place in places:
            while records := reader.read(place, at[place], _READ_AT_ONCE):
                for record in records:
                    yield open_letter(reader, record)
                at[place] = records[-1].offset + 1


def open_letter(reader: QueueReader, record: Record) -> DeadLetter:
    story = read_story(record.headers)
    try:
        return DeadLetter(record, story, load_message(reader, record), is_complete=True)
    except PayloadMissing:
        return DeadLetter(record, story, _message_in(record), is_complete=False)


def load_message(reader: QueueReader, letter: Record) -> QueueMessage:
    """The message as it was before it was given up. PayloadMissing where what was stored apart from its letter is not
    there any more."""
    if is_whole(letter.headers):
        return _message_in(letter)
    body, stored = load_body(reader, letter)
    if stored is Stored.DATA:
        return _message_in(letter)._replace(data=body)
    try:
        return unpack_message(body)
    except InvalidMessage as error:
        raise PayloadMissing(str(error)) from error


def load_payload(reader: QueueReader, letter: Record) -> bytes:
    """The data of the message as it was before it was given up. PayloadMissing as for `load_message`."""
    return load_message(reader, letter).data


def _message_in(letter: Record) -> QueueMessage:
    return QueueMessage(letter.key, letter.data, original_headers(letter.headers))
