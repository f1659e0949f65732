"""Sending for those who want to wait."""

import pytest

from queuecore.errors import PayloadTooLarge, ProviderUnavailable, QueueError
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import SendCallback
from queuecore.sending import send_and_wait
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("tb_core", 3)
STORED = RecordMetadata("tb_core.3", 0, 7, 1_700_000_000_000)


class AnsweringProducer:
    """Answers every send at once with what it was made with; with nothing, never."""

    def __init__(self, *answer: RecordMetadata | QueueError | None) -> None:
        self._answer = answer

    def send(self, info: TopicPartitionInfo, message: QueueMessage, callback: SendCallback) -> None:
        if self._answer:
            callback(*self._answer)  # type: ignore[arg-type]

    def flush(self, timeout_s: float) -> bool:
        return True

    def stop(self) -> None: ...


def test_the_place_is_returned() -> None:
    assert send_and_wait(AnsweringProducer(STORED, None), INFO, QueueMessage(None, b""), 1) is STORED


def test_the_providers_error_is_raised() -> None:
    with pytest.raises(PayloadTooLarge):
        send_and_wait(AnsweringProducer(None, PayloadTooLarge("no")), INFO, QueueMessage(None, b""), 1)


def test_silence_is_an_error_that_names_the_place() -> None:
    with pytest.raises(ProviderUnavailable, match=r"tb_core\.3 did not acknowledge .* within 0 s"):
        send_and_wait(AnsweringProducer(), INFO, QueueMessage(None, b""), 0)
