"""Every message is handled or becomes a letter, in the order its strategy promises, as often as its delivery allows:
whatever fails, times out, crashes, joins and leaves."""

import os
import random
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.delivery import Delivery
from queuecore.processing import ProcessingStrategyType, processing_strategy
from queuecore.providers.base import Provider
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.submit import SubmitStrategyType
from queuecore.testing.services import KafkaService
from tests.reliability.consuming_case import Case, ProviderName
from tests.reliability.consuming_checker import Check

# Another one, another order of events: for who wants to try many, or one again.
SEED = os.environ.get("TEST_SEED", "7")
MESSAGES = 36
MANY = 400

Kind = tuple[SubmitStrategyType, ProcessingStrategyType, Delivery]

ALL: list[Kind] = list(product(SubmitStrategyType, ProcessingStrategyType, Delivery))
# Each submit strategy with each delivery, and each processing strategy with some of them.
SPREAD: list[Kind] = [
    (submit, list(ProcessingStrategyType)[(row + 2 * column) % len(ProcessingStrategyType)], delivery)
    for row, submit in enumerate(SubmitStrategyType)
    for column, delivery in enumerate(Delivery)
]


def name_of(kind: Kind) -> str:
    return "-".join(kind)


def check(provider: Provider, name: ProviderName, where: str, kind: Kind, folder: Path, messages: int) -> None:
    submit, processing, delivery = kind
    seed = f"{SEED}/{name}/{name_of(kind)}"
    case = Case(
        provider=name,
        submit=submit,
        processing=processing_strategy(processing, retries=2, pause_ms=5, max_pause_ms=20),
        delivery=delivery,
        seed=seed,
        topic=f"check-{uuid4().hex[:12]}",
        partitions=3,
        where=where,
        journal=folder / "journal",
        deadly=frozenset() if name == "in-memory" else deadly(seed, messages),
    )
    try:
        breaches = Check(case, provider).run(messages)
        assert not breaches, "\n".join(breaches[:20])
    except AssertionError as error:
        error.add_note(f"again with TEST_SEED={SEED}; the journal is {case.journal}")
        raise


def deadly(seed: str, messages: int) -> frozenset[int]:
    """Some cases have a message or two that kill whoever handles them."""
    chance = random.Random(f"{seed}/deadly")
    return frozenset(chance.sample(range(messages), chance.choice([0, 0, 1, 2])))


def in_memory(kind: Kind, folder: Path, messages: int) -> None:
    with closing(MemoryProvider()) as provider:
        check(provider, "in-memory", "", kind, folder, messages)


def on_log(kind: Kind, folder: Path, messages: int) -> None:
    with closing(LogProvider(folder / "log")) as provider:
        check(provider, "log", str(folder / "log"), kind, folder, messages)


@pytest.mark.parametrize("kind", ALL, ids=name_of)
class TestEmbedded:
    def test_in_memory(self, kind: Kind, tmp_path: Path) -> None:
        in_memory(kind, tmp_path, MESSAGES)

    def test_log(self, kind: Kind, tmp_path: Path) -> None:
        on_log(kind, tmp_path, MESSAGES)

    @pytest.mark.full
    def test_in_memory_with_many_messages(self, kind: Kind, tmp_path: Path) -> None:
        in_memory(kind, tmp_path, MANY)

    @pytest.mark.full
    def test_log_with_many_messages(self, kind: Kind, tmp_path: Path) -> None:
        on_log(kind, tmp_path, MANY)


class TestKafka:
    @pytest.fixture
    def provider(self, kafka_service: KafkaService) -> Iterator[KafkaProvider]:
        with closing(KafkaProvider(kafka_service.bootstrap_servers)) as provider:
            yield provider

    @pytest.mark.parametrize("kind", SPREAD, ids=name_of)
    def test_spread(self, kind: Kind, provider: KafkaProvider, kafka_service: KafkaService, tmp_path: Path) -> None:
        check(provider, "kafka", kafka_service.bootstrap_servers, kind, tmp_path, MESSAGES)

    @pytest.mark.full
    @pytest.mark.parametrize("kind", ALL, ids=name_of)
    def test_all(self, kind: Kind, provider: KafkaProvider, kafka_service: KafkaService, tmp_path: Path) -> None:
        check(provider, "kafka", kafka_service.bootstrap_servers, kind, tmp_path, MANY)
