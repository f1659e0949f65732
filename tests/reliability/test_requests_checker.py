"""Requester or responder killed at random: every future ends, none twice, none with another's answer."""

import json
import os
import threading
from collections import Counter
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.requests import (
    Request,
    RequestTemplate,
    RequestTopics,
    ResponseFuture,
    ResponseOptions,
    ResponseTemplate,
)
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.processes import run_with_mounts
from tests.reliability.requests_case import Case, ProviderName
from tests.reliability.requests_checker import ACTIONS, KILLS, Action, Check
from tests.reliability.requests_journal import What
from tests.reliability.requests_judge import ANSWER, FAILED, FULL, LATE_S, NOT_STORED, TIMED_OUT, judge
from tests.reliability.requests_lives import Lives, Processes, Threads
from tests.reliability.requests_outage import REQUESTS, TIMEOUT_MS, Asking, Outage, ask_on_a_full_disk
from tests.services import running

# Another one, another order of events: for who wants to try many, or one again.
SEED = os.environ.get("TEST_SEED", "7")
ROUNDS = [pytest.param(1, id="once"), pytest.param(12, id="12 times", marks=pytest.mark.full)]


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    folder = tmp_path / "journals"
    folder.mkdir()
    return folder


def case_of(provider: ProviderName, where: str, journals: Path) -> Case:
    return Case(provider, where, f"asking-{uuid4().hex[:8]}", f"{SEED}/{provider}", str(journals))


def check(case: Case, lives: Lives, actions: tuple[Action, ...], rounds: int) -> None:
    try:
        story = Check(case, lives).run(actions, rounds)
        breaches = judge(story)
        assert not breaches, "\n".join([f"{len(breaches)} breaches", *breaches[:20]])
        assert story.count(What.KILLED) == rounds * sum(action.startswith("kill") for action in actions)
        happened(story.outcomes())
    except BaseException as error:
        error.add_note(f"again with TEST_SEED={SEED}; the journals are in {case.folder}")
        raise


def happened(outcomes: Counter[str]) -> None:
    """What must be there for the verdict to say anything."""
    assert outcomes[ANSWER] > 0
    assert outcomes[TIMED_OUT] > 0
    assert outcomes[FULL] > 0
    assert sum(count for outcome, count in outcomes.items() if outcome.startswith(FAILED)) > 0


@pytest.mark.parametrize("rounds", ROUNDS)
class TestKilledAtRandom:
    def test_in_memory(self, journals: Path, rounds: int) -> None:
        """There is one process: who is stopped in the middle of it all stands for who is killed."""
        case = case_of("in-memory", "", journals)
        with closing(MemoryProvider()) as provider:
            check(case, Threads(case, provider), 3 * KILLS, rounds)

    def test_log(self, tmp_path: Path, journals: Path, rounds: int) -> None:
        case = case_of("log", str(tmp_path / "log"), journals)
        check(case, Processes(case), ACTIONS, rounds)

    def test_kafka(self, kafka_service: KafkaService, journals: Path, rounds: int) -> None:
        case = case_of("kafka", kafka_service.bootstrap_servers, journals)
        check(case, Processes(case), ACTIONS, rounds)


class TestAThousandFutures:
    """In one process, with responders that are stopped in the middle of it and others that take their place."""

    def test_each_ends_once_with_its_own_answer(self) -> None:
        topics = RequestTopics.named("asking", partitions=4)
        ended: Counter[bytes] = Counter()
        with closing(MemoryProvider()) as provider, ExitStack() as stack:
            provider.admin().create_topics(topics.specs)
            template = stack.enter_context(RequestTemplate(provider, topics, "ask-1"))
            futures = {b"%d" % number: template.send(b"%d" % number) for number in range(1_000)}
            for number, future in futures.items():
                future.add_done_callback(partial(count_end, ended, number))
            for life in range(1, 6):
                responder = ResponseTemplate(provider, topics, slow_handler, ResponseOptions(concurrency=4))
                responder.start()
                wait_until(partial(has_ended, ended, 100 * life))
                responder.stop(0)
            stack.enter_context(ResponseTemplate(provider, topics, slow_handler))
            answers = {number: future.result(DEADLINE_S).data for number, future in futures.items()}
            wait_until(lambda: template.counts.answered == 1_000)
        assert answers == {number: number for number in futures}
        assert ended == Counter(list(futures))


def count_end(ended: Counter[bytes], number: bytes, _future: ResponseFuture) -> None:
    ended[number] += 1


def has_ended(ended: Counter[bytes], wanted: int) -> bool:
    return ended.total() >= wanted


def slow_handler(request: Request) -> bytes:
    """Slow enough to be caught in the middle."""
    threading.Event().wait(0.001)
    return request.data


class TestTheProviderIsAway:
    """Futures end by their timeouts all the same, and requests work again when it is back."""

    def test_the_broker(self, tmp_path: Path) -> None:
        with (
            contextmanager(running)(KafkaService(tmp_path / "kafka", ephemeral=True)) as broker,
            closing(KafkaProvider(broker.bootstrap_servers)) as provider,
            Asking(provider) as asking,
        ):
            asking.go_on()
            broker.stop()
            outcomes, took_s = asking.ask_meanwhile()
            broker.start()
            asking.go_on()
            outage = asking.told(outcomes, took_s)
        self.expect(outage, {TIMED_OUT})

    def test_a_disk_that_is_full(self, tmp_path: Path) -> None:
        said = run_with_mounts('mount -t tmpfs -o size=4m tmpfs "$1"', ask_on_a_full_disk, tmp_path)
        self.expect(Outage(**json.loads(said)), {TIMED_OUT, NOT_STORED})

    def expect(self, outage: Outage, allowed: set[str]) -> None:
        assert len(outage.outcomes) == REQUESTS
        assert set(outage.outcomes) <= allowed
        assert outage.took_s < TIMEOUT_MS / 1000 + LATE_S
        counts = outage.counts
        assert counts["pending"] == 0
        assert counts["sent"] == sum(
            counts[name] for name in ("answered", "failed", "timed_out", "not_stored", "cancelled")
        )
