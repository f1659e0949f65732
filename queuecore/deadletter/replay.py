"""A dead letter as a message again, for the group that gave it up: the others have handled it."""

from typing import Final
from uuid import uuid4

from queuecore.deadletter.envelope import original_headers, read_story
from queuecore.deadletter.fitting import is_without_data
from queuecore.errors import InvalidMessage
from queuecore.messages import REPLAY_ID, REPLAY_LETTER, Headers, QueueMessage, Record

# Whose turn it is: every other group passes it over.
REPLAY_GROUP: Final = "__queue.replay.group"


def to_replay(letter: Record) -> QueueMessage:
    """What to send. InvalidMessage for a letter whose data were left out."""
    story = read_story(letter.headers)
    if is_without_data(letter.headers):
        raise InvalidMessage(
            f"the letter {letter.topic}[{letter.partition}]@{letter.offset} is without its data; "
            f"read them at {story.topic}[{story.partition}]@{story.offset} and publish them"
        )
    replay = {
        REPLAY_ID: str(uuid4()),
        REPLAY_LETTER: f"{letter.topic}[{letter.partition}]@{letter.offset}",
        REPLAY_GROUP: story.group,
    }
    headers = original_headers(letter.headers) | {name: value.encode() for name, value in replay.items()}
    return QueueMessage(letter.key, letter.data, headers)


def is_for_another(headers: Headers, group: str) -> bool:
    """Whether this is a replay that a group other than this one is to handle."""
    wanted = headers.get(REPLAY_GROUP)
    return wanted is not None and wanted != group.encode()
