"""A dead letter as a message again, for the group that gave it up: the others have handled it."""

from typing import Final
from uuid import uuid4

from queuecore.deadletter.envelope import FailureStory
from queuecore.deadletter.foreign import Origin
from queuecore.deadletter.reading import DeadLetter
from queuecore.errors import InvalidMessage, PayloadMissing
from queuecore.messages import REPLAY_COUNT, REPLAY_ID, REPLAY_LETTER, Headers, QueueMessage

# Whose turn it is: every other group passes it over.
REPLAY_GROUP: Final = "__queue.replay.group"
# A message that fails again and again is not replayed for ever.
MAX_REPLAYS: Final = 5


def to_replay(
    letter: DeadLetter, *, replay_id: str = "", letter_id: str = "", max_replays: int = MAX_REPLAYS
) -> QueueMessage:
    """What to send. By default the replay is a new one, and the letter is named by its place.

    PayloadMissing for a letter that is not complete, InvalidMessage for one whose message has been replayed as often as
    that before.
    """
    record, story = letter.record, letter.story
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    if not letter.is_complete:
        raise PayloadMissing(
            f"the letter {where} is without its payload; read it at {story.topic}[{story.partition}]@{story.offset}, "
            "if it is still there, and publish it"
        )
    check_replays(where, story.replay_count, max_replays)
    marks = replay_headers(story, replay_id or str(uuid4()), letter_id or where)
    return letter.message._replace(headers={**letter.message.headers, **marks})


def replay_headers(story: FailureStory, replay_id: str, letter_id: str) -> dict[str, bytes]:
    """What the message of a letter carries when it is sent again, beside its own headers."""
    marks = {
        REPLAY_ID: replay_id,
        REPLAY_LETTER: letter_id,
        REPLAY_COUNT: str(story.replay_count + 1),
    }
    # Groups of others do not read here: nobody would handle it.
    if story.origin is Origin.SWITCHYARD and story.group:
        marks[REPLAY_GROUP] = story.group
    return {name: text.encode() for name, text in marks.items()}


def check_replays(letter: str, replay_count: int, max_replays: int = MAX_REPLAYS) -> None:
    """InvalidMessage for a letter whose message has been replayed as often as that."""
    if replay_count >= max_replays:
        raise InvalidMessage(
            f"the message of the letter {letter} has been replayed {replay_count} times and failed each time; mend the "
            f"cause and raise max_replays, which is {max_replays}, or discard the letter",
            replay_count=replay_count,
        )


def is_for_another(headers: Headers, group: str) -> bool:
    """Whether this is a replay that a group other than this one is to handle."""
    wanted = headers.get(REPLAY_GROUP)
    return wanted is not None and wanted != group.encode()
