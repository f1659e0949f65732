"""Groups of consumers in several processes: who reads what when members come, go, fall silent and are killed."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from queuecore.errors import NotOwner, QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider, membership
from queuecore.providers.log.consumer import LogConsumer
from queuecore.providers.log.files import FileLock
from queuecore.providers.options import ConsumerOptions, ProducerOptions
from queuecore.sending import send_and_wait
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo
from tests.processes import Child

TOPIC = "shared"
GROUP = "a group / with any name"
FAST = ProducerOptions(acks="1")
# Nobody is taken for dead because of silence unless a test wants it so.
PATIENT_MS = int(10 * DEADLINE_S * 1000)

Held = frozenset[int]


@dataclass
class Heard:
    """What a listener was told, in order."""

    told: list[tuple[str, Held]] = field(default_factory=list)

    def assigned(self, partitions: frozenset[ProviderPartition]) -> None:
        self.told.append(("assigned", numbers(partitions)))

    def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
        self.told.append(("revoked", numbers(partitions)))

    def lost(self, partitions: frozenset[ProviderPartition]) -> None:
        self.told.append(("lost", numbers(partitions)))


def numbers(partitions: frozenset[ProviderPartition]) -> Held:
    return frozenset(place.partition for place in partitions)


def info(partition: int) -> TopicPartitionInfo:
    return TopicPartitionInfo(TOPIC, partition, use_internal_partition=True)


def create(root: Path, partitions: int) -> None:
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec(TOPIC, partitions)])


def store(provider: LogProvider, partition: int, *data: str) -> None:
    producer = provider.producer()
    for one in data:
        send_and_wait(producer, info(partition), QueueMessage(None, one.encode()), DEADLINE_S)


# --- members that are processes


def be_a_member(parent: Connection, root: Path, session_ms: int) -> None:
    """Do what the parent says, one word at a time."""
    with closing(LogProvider(root, FAST, ConsumerOptions(session_timeout_ms=session_ms))) as provider:
        consumer = provider.consumer(GROUP, TOPIC)
        heard = Heard()
        consumer.subscribe(listener=heard)
        words: dict[str, Callable[[], object]] = {
            "poll": lambda: [record.data.decode() for record in consumer.poll(20)],
            "held": lambda: numbers(consumer.partitions),
            "commit": consumer.commit,
            "told": lambda: heard.told,
            "stop": consumer.stop,
        }
        while True:
            word = parent.recv()
            try:
                parent.send(words[word]())
            except QueueError as error:
                parent.send(error)


class Member:
    """A consumer in a process of its own."""

    def __init__(self, root: Path, session_ms: int = PATIENT_MS) -> None:
        self.child = Child(be_a_member, root, session_ms)

    def __call__(self, word: str) -> object:
        self.child.say(word)
        return self.child.hear()

    def polled(self) -> list[str]:
        records = self("poll")
        assert isinstance(records, list)
        return records

    def held(self) -> Held:
        held = self("held")
        assert isinstance(held, frozenset)
        return held


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Callable[..., list[Member]]]:
    """Makes so many, in a folder whose topic has four partitions; no provider is open when they begin."""
    create(tmp_path, 4)
    with ExitStack() as stack:

        def make(count: int, session_ms: int = PATIENT_MS) -> list[Member]:
            made = [Member(tmp_path, session_ms) for _ in range(count)]
            for member in made:
                stack.enter_context(member.child)
            return made

        yield make


def settle(members: list[Member], wanted: list[int], partitions: int = 4) -> list[Held]:
    """Let them poll until each holds so many, and all partitions are held once; who holds which."""
    held: list[Held] = []

    def is_settled() -> bool:
        for member in members:
            assert member.polled() == []
        held[:] = [member.held() for member in members]
        return [len(one) for one in held] == wanted and sorted(n for one in held for n in one) == [*range(partitions)]

    wait_until(is_settled)
    return held


def take(members: list[Member], count: int) -> list[list[str]]:
    """Let them poll until so many records came; what each got."""
    got: list[list[str]] = [[] for _ in members]

    def is_enough() -> bool:
        for member, records in zip(members, got, strict=True):
            records += member.polled()
        return sum(map(len, got)) >= count

    wait_until(is_enough)
    return got


def test_members_share_the_partitions_and_each_record_goes_to_one_of_them(
    tmp_path: Path, members: Callable[[int], list[Member]]
) -> None:
    both = members(2)
    held = settle(both, [2, 2])
    with closing(LogProvider(tmp_path, FAST)) as provider:
        for partition in range(4):
            store(provider, partition, f"{partition} a", f"{partition} b")
        got = take(both, 8)
        for mine, partitions in zip(got, held, strict=True):
            assert sorted(mine) == sorted(f"{n} {which}" for n in partitions for which in "ab")
        described = provider.admin().groups()[GROUP]
        assert sorted(map(numbers, described.members.values()), key=sorted) == sorted(held, key=sorted)


def test_a_member_that_stops_leaves_its_partitions_to_the_others(members: Callable[[int], list[Member]]) -> None:
    [one, other] = members(2)
    settle([one, other], [2, 2])
    one("stop")
    settle([other], [4])


def test_what_a_killed_member_held_is_anothers_at_once(tmp_path: Path, members: Callable[[int], list[Member]]) -> None:
    """Nobody waits for its session to end, which takes ten minutes here. What it committed is not read again."""
    [one, other] = members(2)
    [mine, _] = settle([one, other], [2, 2])
    with closing(LogProvider(tmp_path, FAST)) as provider:
        for partition in range(4):
            store(provider, partition, f"{partition} done")
        take([one, other], 4)
        for member in (one, other):
            assert member("commit") is None
        for partition in mine:
            store(provider, partition, f"{partition} not done")
        take([one], 2)
        one.child.kill()
        [again] = take([other], 2)
        assert sorted(again) == sorted(f"{partition} not done" for partition in mine)
        assert other("commit") is None
        committed = provider.admin().committed_offsets({GROUP: [info(n).place for n in range(4)]})[GROUP]
        assert committed == {info(n).place: 2 if n in mine else 1 for n in range(4)}


def test_the_last_member_to_be_killed_leaves_a_group_that_can_be_joined(
    members: Callable[[int], list[Member]],
) -> None:
    for _ in range(3):
        both = members(2)
        settle(both, [2, 2])
        for member in both:
            member.child.kill()


def test_a_member_that_hangs_is_out_after_its_session_and_what_it_does_late_has_no_effect(
    tmp_path: Path, members: Callable[..., list[Member]]
) -> None:
    [zombie, living] = members(2, session_ms=4_000)
    [mine, _] = settle([zombie, living], [2, 2])
    with closing(LogProvider(tmp_path, FAST)) as provider:
        for partition in mine:
            store(provider, partition, str(partition))
        take([zombie], 2)
        os.kill(zombie.child.pid, signal.SIGSTOP)
        [again] = take([living], 2)
        assert sorted(again) == sorted(map(str, mine))
        assert living("commit") is None
        committed = provider.admin().committed_offsets({GROUP: [info(n).place for n in mine]})
        assert set(committed[GROUP].values()) == {1}

        os.kill(zombie.child.pid, signal.SIGCONT)
        assert isinstance(zombie("commit"), NotOwner)
        settle([zombie, living], [2, 2])
        told = zombie("told")
        assert isinstance(told, list)
        assert ("lost", mine) in told


def test_many_that_come_and_go_at_once_end_up_with_one_reader_for_each_partition(tmp_path: Path) -> None:
    create(tmp_path, 12)
    with ExitStack() as stack:
        children = [stack.enter_context(Child(come_and_go, tmp_path, 12)) for _ in range(6)]
        held = [child.hear() for child in children]
        assert [len(one) for one in held] == [2] * 6
        assert sorted(number for one in held for number in one) == list(range(12))
        for child in children:
            child.say("that is all")
            assert child.hear() == [], "nobody was taken for dead"


def come_and_go(parent: Connection, root: Path, partitions: int) -> None:
    with closing(LogProvider(root, FAST, ConsumerOptions(session_timeout_ms=PATIENT_MS))) as provider:
        consumer = provider.consumer(GROUP, TOPIC)
        heard = Heard()
        for _ in range(10):
            consumer.subscribe(listener=heard)
            consumer.poll(0)
        wait_until(lambda: consumer.poll(20) == [] and is_settled(provider, members=6, partitions=partitions))
        parent.send(numbers(consumer.partitions))
        assert parent.poll(DEADLINE_S)
        parent.send([one for one in heard.told if one[0] == "lost"])


def is_settled(provider: LogProvider, members: int, partitions: int) -> bool:
    group = provider.admin().groups().get(GROUP)
    held = [] if group is None else [len(one) for one in group.members.values()]
    return held == [partitions // members] * members


# --- in one process, with a clock of our own


class Group:
    """Members of one process, that share a clock."""

    def __init__(self, root: Path) -> None:
        self.clock = ManualClock()
        self.provider = LogProvider(root, FAST, ConsumerOptions(session_timeout_ms=10_000), self.clock)
        self._consumers: list[LogConsumer] = []

    def join(self, listener: Heard | None = None) -> LogConsumer:
        consumer = self.provider.consumer(GROUP, TOPIC)
        consumer.subscribe(listener=listener)
        self._consumers.append(consumer)
        return consumer

    def look(self, *consumers: LogConsumer) -> None:
        """Let time pass, so that all of these look at the group, often enough to hand over what moves."""
        for _ in range(3):
            self.clock.advance(0.25)
            for consumer in consumers:
                consumer.poll(0)

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.stop()
        self.provider.close()


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    create(tmp_path, 4)
    with closing(Group(tmp_path)) as group:
        yield group


def test_a_member_that_is_silent_for_its_session_is_out_and_not_a_moment_before(group: Group) -> None:
    heard = Heard()
    silent, living = group.join(heard), group.join()
    group.look(silent, living)
    mine = numbers(silent.partitions)
    assert len(mine) == 2
    for _ in range(9):
        group.clock.advance(1)
        living.poll(0)
    assert len(living.partitions) == 2
    group.clock.advance(1.5)
    living.poll(0)
    assert len(living.partitions) == 4

    with pytest.raises(NotOwner):
        silent.commit({info(min(mine)).place: 0})
    assert group.provider.admin().committed_offsets({GROUP: [info(n).place for n in range(4)]}) == {GROUP: {}}
    group.look(silent, living)
    assert heard.told[:2] == [("assigned", mine), ("lost", mine)]
    assert len(silent.partitions) == 2, "it is a member again"


def test_a_pack_that_takes_long_is_no_silence(group: Group) -> None:
    busy, living = group.join(), group.join()
    group.look(busy, living)
    for _ in range(10):
        group.clock.advance(5)
        busy.keep_alive()
        living.poll(0)
    assert len(busy.partitions) == 2
    busy.commit(dict.fromkeys(busy.partitions, 0))


def test_what_moves_is_read_by_the_new_member_only_when_the_old_one_has_let_go(group: Group) -> None:
    heard = Heard()
    old = group.join(heard)
    group.look(old)
    new = group.join()
    group.clock.advance(0.25)
    new.poll(0)
    assert new.partitions == frozenset()
    old.commit(dict.fromkeys(old.partitions, 0))
    group.look(old, new)
    assert heard.told[-1] == ("revoked", numbers(new.partitions))
    assert len(new.partitions) == len(old.partitions) == 2


def test_a_listener_that_raises_does_not_keep_what_it_gives_up(group: Group) -> None:
    class Failing(Heard):
        def revoked(self, partitions: frozenset[ProviderPartition]) -> None:
            raise ValueError("a bug of the caller's")

    old = group.join(Failing())
    group.look(old)
    new = group.join()
    group.clock.advance(0.25)
    with pytest.raises(ValueError, match="a bug of the caller's"):
        old.poll(0)
    group.look(old, new)
    assert len(new.partitions) == len(old.partitions) == 2


def test_a_topic_that_grows_is_shared_anew(group: Group) -> None:
    one, other = group.join(), group.join()
    group.look(one, other)
    group.provider.admin().alter_topics([TopicSpec(TOPIC, 6)])
    group.look(one, other)
    assert sorted(numbers(one.partitions) | numbers(other.partitions)) == [0, 1, 2, 3, 4, 5]
    assert len(one.partitions) == len(other.partitions) == 3


def test_what_was_committed_survives_everyone(group: Group, tmp_path: Path) -> None:
    consumer = group.join()
    store(group.provider, 2, "a", "b", "c")
    group.look(consumer)
    consumer.commit({info(2).place: 2})
    group.close()
    with closing(Group(tmp_path)) as later:
        assert later.provider.admin().committed_offsets({GROUP: [info(2).place]}) == {GROUP: {info(2).place: 2}}
        again = later.join()
        assert [record.data for record in again.poll(0)] == [b"c"]


def test_a_member_whose_file_was_taken_for_a_dead_ones_makes_another(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another member saw the file before it was locked, and swept it away."""
    swept: list[Path] = []

    class Swept(FileLock):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            if len(swept) < 3:
                swept.append(path)
                path.unlink()

    with monkeypatch.context() as patch:
        patch.setattr(membership, "FileLock", Swept)
        member = group.join()
    [path] = set(swept)
    assert path.exists()
    with closing(FileLock(path)) as lock:
        assert not lock.try_lock(), "its lock says that it lives"
    group.look(member, group.join())
    assert len(member.partitions) == 2
