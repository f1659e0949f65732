"""Consumers under random failures, timeouts, crashes and rebalances, and whether they keep what their queue promises.

Everything random follows from the case's seed but the order in which threads and processes get on.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Literal

from queuecore.messages import TENANT_ID, QueueMessage
from queuecore.providers.base import Provider, TopicSpec
from queuecore.sending import send
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo, dead_letter_partition
from tests.reliability.consuming_case import Case
from tests.reliability.consuming_judge import Event, Message, Story, What, judge, read_journal
from tests.reliability.consuming_members import Processes, Threads

_KEYS: Final = 5
_TENANTS: Final = 3

Action = Literal["join", "crash", "leave"]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens to the members, once so many more messages have been delivered."""

    action: Action
    member: str
    after: int


def steps(seed: str) -> list[Step]:
    """One joins; then two more join, one leaves, and two crash, in any order. Somebody is always there."""
    chance = random.Random(f"{seed}/steps")
    present, absent = ["a"], ["b", "c"]
    planned = [Step("join", "a", 0)]
    for action in _actions(chance):
        member = absent.pop(0) if action == "join" else chance.choice(present)
        if action == "join":
            present.append(member)
        elif action == "leave":
            present.remove(member)
        planned.append(Step(action, member, chance.randint(1, 12)))
    return planned


def _actions(chance: random.Random) -> list[Action]:
    actions: list[Action] = ["join", "leave", "crash", "crash"]
    chance.shuffle(actions)
    # Somebody joins before anybody leaves.
    actions.insert(chance.randint(0, actions.index("leave")), "join")
    return actions


class Check:
    """One case, from the first message to the verdict."""

    def __init__(self, case: Case, provider: Provider) -> None:
        self._case = case
        self._provider = provider
        self._letters = [dead_letter_partition(info) for info in case.infos]
        topics = [TopicSpec(info.full_topic_name) for info in (*case.infos, case.output)]
        provider.admin().create_topics([*topics, TopicSpec(self._letters[0].full_topic_name, case.partitions)])
        self._members = (Threads if case.provider == "in-memory" else Processes)(case, provider)
        self._chance = random.Random(f"{case.seed}/messages")
        self._messages: list[Message] = []

    def run(self, messages: int) -> list[str]:
        """What was not kept."""
        planned = steps(self._case.seed)
        try:
            for step in planned:
                self._publish(messages // len(planned))
                self._do(step)
            self._wait_until(self._is_done)
        finally:
            self._members.close()
        outputs, letters = self._numbers([self._case.output]), self._numbers(self._letters)
        return judge(self._case.promise, Story(self._messages, self._events(), outputs, letters))

    def _publish(self, count: int) -> None:
        producer = self._provider.producer()
        stored = []
        for _ in range(count):
            message = self._new_message()
            headers = {TENANT_ID: message.tenant.encode()} if message.tenant else {}
            sent = QueueMessage(message.key.encode() or None, str(message.number).encode(), headers)
            stored.append(send(producer, self._case.infos[message.partition], sent))
            self._messages.append(message)
        for future in stored:
            future.result(DEADLINE_S)

    def _new_message(self) -> Message:
        """An entity is always in the same partition; one in so many messages has none, or no tenant."""
        entity, tenant = self._chance.randrange(_KEYS), self._chance.randrange(_TENANTS)
        partition = entity % self._case.partitions
        key, name = f"key-{entity}" if entity else "", f"tenant-{tenant}" if tenant else ""
        return Message(len(self._messages), partition, key, name)

    def _do(self, step: Step) -> None:
        begun = self._deliveries()
        self._wait_until(lambda: self._deliveries() >= begun + step.after or self._is_done())
        match step.action:
            case "join":
                self._members.join(step.member)
            case "leave":
                self._members.leave(step.member)
            case "crash":
                self._members.crash(step.member)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        def look() -> bool:
            self._members.check()
            return condition()

        wait_until(look, 2 * DEADLINE_S)

    def _events(self) -> list[Event]:
        return read_journal(self._case.journal.read_text())

    def _deliveries(self) -> int:
        return sum(event.what is What.BEGUN for event in self._events())

    def _is_done(self) -> bool:
        """Whether everything published is committed."""
        places = [info.place for info in self._case.infos]
        admin = self._provider.admin()
        committed = admin.committed_offsets({self._case.group: places})[self._case.group]
        return all(committed.get(place, 0) == end for place, end in admin.end_offsets(places).items())

    def _numbers(self, infos: Sequence[TopicPartitionInfo]) -> Counter[int]:
        """How often each message is there, for those who read what is committed."""
        found: Counter[int] = Counter()
        with closing(self._provider.reader()) as reader:
            for info in infos:
                at = 0
                while records := reader.read(info.place, at, 1_000):
                    found.update(int(record.data) for record in records)
                    at = records[-1].offset + 1
        return found
