"""Who sends hands its messages to the library itself, as long as none of others' would be overtaken."""

from collections.abc import Sequence

from queuecore.errors import QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import Sending
from queuecore.providers.kafka.inbox import Handed, Inbox
from queuecore.providers.options import ProducerOptions
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("topic")
HANDED: Handed = (INFO.place, (None, b"", None, 0), lambda _metadata, _error: None)


def nobody(metadata: RecordMetadata | None, error: QueueError | None) -> None:
    """Is told."""


SENDS: list[Sending] = [(INFO, QueueMessage(None, b""), nobody)] * 3


def all_of(sends: Sequence[Sending]) -> int:
    return len(sends)


def is_awaited() -> bool:
    return True


def test_an_empty_inbox_is_passed_by() -> None:
    assert Inbox(ProducerOptions()).pass_by(all_of, SENDS) == 3


def test_what_waits_is_not_overtaken() -> None:
    inbox = Inbox(ProducerOptions())
    inbox.put(HANDED, 0)
    assert inbox.pass_by(all_of, SENDS) == 0


def test_what_was_taken_is_not_overtaken_until_it_has_passed() -> None:
    inbox = Inbox(ProducerOptions())
    inbox.put(HANDED, 0)
    assert inbox.take(is_awaited) == [HANDED]
    assert inbox.pass_by(all_of, SENDS) == 0
    inbox.passed()
    assert inbox.pass_by(all_of, SENDS) == 3


def test_nothing_passes_an_inbox_that_is_closed() -> None:
    inbox = Inbox(ProducerOptions())
    inbox.close()
    assert inbox.pass_by(all_of, SENDS) == 0
