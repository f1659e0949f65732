"""A message that kills whoever handles it: it is found and becomes a letter, and no other does."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.deadletter.envelope import read_story
from queuecore.delivery import Delivery
from queuecore.messages import QueueMessage
from queuecore.processing import processing_strategy
from queuecore.providers.base import Provider, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.sending import send_and_wait
from queuecore.submit import SubmitStrategyType
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo, dead_letter_partition
from tests.reliability.consuming_case import Case
from tests.reliability.consuming_members import Processes

PARTITIONS = 2
MESSAGES = 20


class Killed:
    """One member, that comes again whenever it is killed, until all is done."""

    def __init__(self, provider: Provider, case: Case) -> None:
        self._provider = provider
        self._case = case
        self._letters = [dead_letter_partition(info) for info in case.infos]
        topics = [TopicSpec(info.full_topic_name) for info in (*case.infos, case.output)]
        provider.admin().create_topics([*topics, TopicSpec(self._letters[0].full_topic_name, PARTITIONS)])
        for number in range(MESSAGES):
            info = case.infos[number % PARTITIONS]
            send_and_wait(provider.producer(), info, QueueMessage(b"key", str(number).encode()), DEADLINE_S)

    def consume(self) -> None:
        members = Processes(self._case, self._provider)
        places = [info.place for info in self._case.infos]
        admin = self._provider.admin()

        def is_done() -> bool:
            members.check()
            committed = admin.committed_offsets({self._case.group: places})[self._case.group]
            return all(committed.get(place) == end for place, end in admin.end_offsets(places).items())

        members.join("a")
        try:
            wait_until(is_done)
        finally:
            members.close()

    def outputs(self) -> Counter[int]:
        return Counter(number for number, _ in self._read([self._case.output]))

    def letters(self) -> Counter[tuple[int, str]]:
        """Each with the reason why it was given up."""
        return Counter(self._read(self._letters))

    def _read(self, infos: list[TopicPartitionInfo]) -> list[tuple[int, str]]:
        with closing(self._provider.reader()) as reader:
            records = [record for info in infos for record in reader.read(info.place, 0, 1_000)]
        return [(int(record.data), read_story(record.headers).reason) for record in records]


@pytest.mark.parametrize(("submit", "delivery"), [("BURST", "at_least_once"), ("SEQUENTIAL", "exactly_once")])
@pytest.mark.parametrize("deadly", [{4}, {4, 6}, {0, 1}], ids=["one", "two in a row", "one in each partition"])
def test_those_that_kill_become_letters_and_no_other(
    deadly: set[int], submit: str, delivery: str, tmp_path: Path
) -> None:
    case = Case(
        provider="log",
        submit=SubmitStrategyType(submit),
        processing=processing_strategy("SKIP_ALL_FAILURES"),
        delivery=Delivery(delivery),
        seed="killers",
        topic=f"killers-{uuid4().hex[:12]}",
        partitions=PARTITIONS,
        where=str(tmp_path / "log"),
        journal=tmp_path / "journal",
        deadly=frozenset(deadly),
        calm=True,
    )
    with closing(LogProvider(tmp_path / "log")) as provider:
        killed = Killed(provider, case)
        killed.consume()
        assert killed.letters().keys() == {(number, "killed_worker") for number in deadly}
        assert killed.outputs().keys() == set(range(MESSAGES)) - deadly
