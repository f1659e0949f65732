"""kill -9 of consumers: at most once loses but never repeats, at least once repeats but never loses, and exactly once
has each output exactly once."""

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from queuecore import Queues, open_queues
from queuecore.consuming.draining import Backlog
from queuecore.consuming.giving_up import KILLED
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo
from tests.reliability.consumer_to_kill import consumer_to_kill, kill

KILLS = [pytest.param(4, id="4 kills"), pytest.param(60, id="60 kills", marks=pytest.mark.full)]


@dataclass
class Site:
    """A log that consumers in other processes work on."""

    folder: Path
    queues: Queues
    partitions: int
    published: int = 0

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    def publish(self, count: int) -> None:
        for number in range(self.published, self.published + count):
            self.queues.publish("in", str(number % 17), b"%d" % number)
        self.published += count
        assert self.queues.flush(DEADLINE_S)

    def handled(self) -> Counter[int]:
        """How often each message was given to a handler."""
        return Counter(map(int, self.journal.read_text().split())) if self.journal.exists() else Counter()

    def outputs(self) -> Counter[int]:
        """How often each message was sent on, for those who read what is committed."""
        found: Counter[int] = Counter()
        with closing(self.queues.provider.reader()) as reader:
            at = 0
            while records := reader.read(TopicPartitionInfo("out", 0).place, at, 1_000):
                found.update(int(record.data) for record in records)
                at = records[-1].offset + 1
        return found

    def blamed(self, kills: int) -> Counter[int]:
        """How often each message became a letter. Of a process that is killed again, what it was alone with then is
        blamed, though its handler may not have begun; nothing else is a reason here."""
        letters = list(self.queues.dead_letters("in"))
        assert {letter.story.reason for letter in letters} <= {KILLED}
        assert len(letters) < kills
        return Counter(int(letter.message.data) for letter in letters)

    def consumer(self, delivery: str, deadly: str = "") -> AbstractContextManager["subprocess.Popen[bytes]"]:
        return consumer_to_kill("log", str(self.folder / "log"), delivery, str(self.journal), f"--deadly={deadly}")

    def finish(self, delivery: str) -> None:
        """Have an undisturbed consumer handle whatever is left."""
        infos = [TopicPartitionInfo("in", number).place for number in range(self.partitions)]
        with self.consumer(delivery) as process:
            wait_until(Backlog(self.queues.provider, "g", infos).is_done)
        assert process.returncode == 0


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    partitions = getattr(request, "param", 1)
    with open_queues("log", folder=tmp_path / "log") as queues:
        queues.create("in", partitions)
        queues.create("out")
        yield Site(tmp_path, queues, partitions)


class TestKilledInTheMiddleOfAMessage:
    """Ten messages in one pack; the consumer is killed in the handler of the sixth."""

    def crash_and_go_on(self, site: Site, delivery: str) -> None:
        site.publish(10)
        with site.consumer(delivery, deadly="5") as process:
            wait_until(lambda: 5 in site.handled())
            kill(process)
        site.finish(delivery)

    def test_at_most_once_loses_what_was_polled_and_repeats_nothing(self, site: Site) -> None:
        self.crash_and_go_on(site, "at_most_once")
        assert site.handled() == Counter(range(6))

    def test_at_least_once_repeats_what_was_not_committed_and_loses_nothing(self, site: Site) -> None:
        self.crash_and_go_on(site, "at_least_once")
        handled = site.handled()
        assert handled.keys() == set(range(10))
        assert handled[5] == 2, "it was not done"
        assert [handled[number] for number in range(6, 10)] == [1, 1, 1, 1]

    def test_exactly_once_handles_again_but_sends_once(self, site: Site) -> None:
        self.crash_and_go_on(site, "exactly_once")
        assert site.handled()[5] == 2, "only what it sent is exactly once"
        assert site.outputs() == Counter(range(10))


@pytest.mark.parametrize("site", [3], indirect=True)
@pytest.mark.parametrize("kills", KILLS)
class TestKilledAgainAndAgain:
    """Two consumers share three partitions; one after the other is killed at any point."""

    def crash(self, site: Site, delivery: str, kills: int) -> set[int]:
        """All messages that were published."""
        chance = random.Random(os.environ.get("SWITCHYARD_TEST_SEED", "7"))
        with ExitStack() as stack:
            running = [stack.enter_context(site.consumer(delivery)) for _ in range(2)]
            for _ in range(kills):
                enough = site.handled().total() + chance.randint(1, 300)
                site.publish(400)
                wait_until(lambda enough=enough: site.handled().total() >= enough)
                kill(running.pop(chance.randrange(2)))
                running.append(stack.enter_context(site.consumer(delivery)))
        site.finish(delivery)
        return set(range(site.published))

    def test_at_most_once_never_repeats(self, site: Site, kills: int) -> None:
        published = self.crash(site, "at_most_once", kills)
        handled = site.handled()
        assert set(handled.values()) == {1}
        assert handled.keys() <= published

    def test_at_least_once_never_loses(self, site: Site, kills: int) -> None:
        published = self.crash(site, "at_least_once", kills)
        blamed = site.blamed(kills)
        assert site.handled().keys() | blamed.keys() == published
        assert site.outputs().keys() | blamed.keys() == published

    def test_exactly_once_has_each_output_once(self, site: Site, kills: int) -> None:
        published = self.crash(site, "exactly_once", kills)
        blamed = site.blamed(kills)
        assert site.handled().keys() | blamed.keys() == published
        assert site.outputs() + blamed == Counter(published)
