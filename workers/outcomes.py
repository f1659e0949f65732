"""What became of replayed messages, told before their offsets are committed."""

from queueapi.actions.dead_letters import mark_replayed
from queueapi.actions.letter_rows import header_id
from queuecore.deadletter.envelope import FailureStory
from queuecore.messages import REPLAY_LETTER, Record


class LetterOutcomes:
    """A replay that succeeded closes its letter. One that failed again comes back as a letter of its own, which
    the indexer ties to the first."""

    def succeeded(self, record: Record) -> None:
        if letter_id := header_id(record, REPLAY_LETTER):
            mark_replayed(letter_id)

    def dead_lettered(self, record: Record, story: FailureStory) -> None:
        """Nothing to do here: the letter is on its way to the index."""
