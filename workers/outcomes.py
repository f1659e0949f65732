"""What became of replayed messages, told before their offsets are committed."""

from uuid import UUID

from queueapi.actions.dead_letters import mark_replayed
from queuecore.deadletter.envelope import FailureStory
from queuecore.messages import REPLAY_LETTER, Record, text_header


def replayed_letter(record: Record) -> UUID | None:
    """The letter this message is a replay of. A header that is no id is some producer's own, and says nothing."""
    try:
        return UUID(text_header(record.headers, REPLAY_LETTER) or "")
    except ValueError:
        return None


class LetterOutcomes:
    """A replay that succeeded closes its letter. One that failed again comes back as a letter of its own, which
    the indexer ties to the first."""

    def succeeded(self, record: Record) -> None:
        if letter_id := replayed_letter(record):
            mark_replayed(letter_id)

    def dead_lettered(self, record: Record, story: FailureStory) -> None:
        """Nothing to do here: the letter is on its way to the index."""
