"""A consumer under test, in a process of its own or in the test's. What its group gives and takes is in the journal."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.marks import FileMarks, MarkStore
from queuecore.providers.base import AssignmentListener, Epochs, Provider, QueueConsumer
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.reliability.consuming_case import Case, Journal
from tests.reliability.consuming_handler import ToOutput, handler
from tests.reliability.consuming_judge import What

STOP_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.05


def consumption(
    case: Case, provider: Provider, journal: Journal, who: str, marks: MarkStore | None = None
) -> Consumption:
    """One life of a member, which is called `member.life`."""
    member, _, _ = who.partition(".")
    watched: Any = _WatchedProvider(provider, case, journal, who)
    return Consumption(
        case.plan(member), watched, handler(case, journal, who), composer=ToOutput(case.output), marks=marks
    )


def work(parent: Connection, case: Case, who: str) -> None:
    """Consume until the parent says something. For a process of its own."""
    journal = Journal(case.journal)
    with closing(case.open()) as provider:
        consuming = consumption(case, provider, journal, who, FileMarks(case.journal.parent / "marks"))
        consuming.start()
        while not parent.poll(_LOOK_EVERY_S):
            if consuming.error is not None:
                raise consuming.error
        assert consuming.stop(STOP_S), "it did not drain"


@dataclass(frozen=True, slots=True)
class _Watching:
    """Notes what is given before anything is made of it, and what is taken when nothing is any more."""

    listener: AssignmentListener
    numbers: Mapping[ProviderPartition, int]
    journal: Journal
    who: str

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self._note(What.ASSIGNED, partitions)
        self.listener.assigned(partitions)

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        self.listener.revoked(partitions)
        self._note(What.RELEASED, partitions)

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        self.listener.lost(partitions)
        self._note(What.RELEASED, partitions)

    def _note(self, what: What, partitions: Iterable[ProviderPartition]) -> None:
        for place in partitions:
            self.journal.note(what, self.who, self.numbers[place])


class _WatchedProvider:
    """A provider whose consumers are watched."""

    def __init__(self, provider: Provider, case: Case, journal: Journal, who: str) -> None:
        self._provider = provider
        self._numbers = {info.place: number for number, info in enumerate(case.infos)}
        self._journal = journal
        self._who = who

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def consumer(self, *arguments: Any, **options: Any) -> QueueConsumer:
        # The consumer itself, and no other in its place: a transaction asks it for its group.
        consumer: Any = self._provider.consumer(*arguments, **options)
        subscribe = consumer.subscribe

        def watched(
            partitions: Iterable[TopicPartitionInfo] | None = None,
            listener: AssignmentListener | None = None,
            epochs: Epochs | None = None,
        ) -> None:
            subscribe(partitions, listener and _Watching(listener, self._numbers, self._journal, self._who), epochs)

        consumer.subscribe = watched
        return consumer  # type: ignore[no-any-return]
