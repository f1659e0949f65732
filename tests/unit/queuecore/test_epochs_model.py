"""Whoever comes, goes and comes late: after the first commit of an epoch, none of an earlier one takes effect."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from queuecore.errors import GroupActive, NotOwner, StaleEpoch
from queuecore.groups.epochs import Fence
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, QueueConsumer, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import ProviderPartition, TopicPartitionInfo

INFOS = [TopicPartitionInfo("t", number, use_internal_partition=True) for number in range(2)]
PLACES = [info.place for info in INFOS]
GROUP = "g"
MESSAGES = 5

who = st.integers(0, 3)
epochs = st.dictionaries(st.sampled_from(PLACES), st.integers(0, 4), min_size=1)
some = st.sets(st.sampled_from(PLACES), min_size=1)


class EpochMachine(RuleBasedStateMachine):
    """Four consumers of one group, two of them under one member id, that change what they want as they like."""

    def open(self) -> Provider:
        return MemoryProvider()

    @initialize()
    def begin(self) -> None:
        self.provider = self.open()
        self.provider.admin().create_topics([TopicSpec("t", partitions=2)])
        for info in INFOS:
            for _ in range(MESSAGES):
                send_and_wait(self.provider.producer(), info, QueueMessage(None, b"x"), DEADLINE_S)
        ids = [None, None, "one", "one"]
        self.consumers: list[QueueConsumer] = [self.provider.consumer(GROUP, member_id=one) for one in ids]
        self.subscribed: set[int] = set()
        self.stored: dict[ProviderPartition, int] = {}
        self.committed: dict[ProviderPartition, int] = {}

    def teardown(self) -> None:
        if hasattr(self, "provider"):
            for consumer in self.consumers:
                consumer.stop()
            self.provider.close()

    @rule(number=who, wanted=epochs, free=st.sets(st.sampled_from(PLACES)))
    def want(self, number: int, wanted: dict[ProviderPartition, int], free: set[ProviderPartition]) -> None:
        infos = [info for info in INFOS if info.place in wanted or info.place in free]
        self.subscribed.add(number)
        self.consumers[number].subscribe(infos, epochs=wanted)

    @rule(number=who, wanted=epochs)
    def want_and_look(self, number: int, wanted: dict[ProviderPartition, int]) -> None:
        self.want(number, wanted, set())
        for _ in PLACES:
            self.look(number)

    @rule(number=who)
    def look(self, number: int) -> None:
        if number in self.subscribed:
            with suppress(NotOwner):
                self.consumers[number].poll(0)

    @rule(number=who)
    def leave(self, number: int) -> None:
        self.subscribed.discard(number)
        self.consumers[number].unsubscribe()

    @rule(number=who, of=some)
    def commit(self, number: int, of: set[ProviderPartition]) -> None:
        """What it holds, or held when it last looked; all of it is done."""
        offsets = dict.fromkeys(of & self.consumers[number].partitions, MESSAGES)
        self.note(number, offsets, lambda: self.consumers[number].commit(offsets))

    @rule(number=who, of=some)
    def transact(self, number: int, of: set[ProviderPartition]) -> None:
        offsets = dict.fromkeys(of & self.consumers[number].partitions, MESSAGES)

        def commit() -> None:
            with self.provider.transactional_producer("some").begin() as transaction:
                transaction.commit_offsets(self.consumers[number], offsets)

        self.note(number, offsets, commit)

    def note(self, number: int, offsets: dict[ProviderPartition, int], commit: Callable[[], None]) -> None:
        fence: Fence = self.consumers[number].fence
        held = fence.of(offsets)
        is_stale = any(epoch < self.stored.get(place, 0) for place, epoch in held.items())
        try:
            commit()
        except StaleEpoch:
            refused, says_stale = True, True
        except NotOwner:
            refused, says_stale = True, False
        else:
            refused, says_stale = False, False
            self.stored |= held
            self.committed |= offsets
        assert refused or not is_stale
        assert is_stale or not says_stale

    @rule(place=st.sampled_from(PLACES), offset=st.integers(0, MESSAGES))
    def alter(self, place: ProviderPartition, offset: int) -> None:
        with suppress(GroupActive):
            self.provider.admin().alter_group_offsets(GROUP, {place: offset})
            self.committed[place] = offset

    @invariant()
    def what_is_stored_is_what_took_effect(self) -> None:
        if hasattr(self, "provider"):
            admin = self.provider.admin()
            assert admin.committed_epochs({GROUP: PLACES})[GROUP] == self.stored
            assert admin.committed_offsets({GROUP: PLACES})[GROUP] == self.committed


class LogEpochMachine(EpochMachine):
    def open(self) -> Provider:
        self.folder = tempfile.TemporaryDirectory()
        return LogProvider(Path(self.folder.name))

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestEpochsInMemory = EpochMachine.TestCase
TestEpochsInMemory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEpochsOnTheLog = LogEpochMachine.TestCase
TestEpochsOnTheLog.settings = settings(max_examples=10, stateful_step_count=40, deadline=None)
