"""What the log says of brokers that cannot be reached."""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import KafkaError, KafkaException

from queuecore.errors import ProviderUnavailable
from queuecore.providers.kafka.outage import Chatter, Outage
from queuecore.testing.clock import ManualClock
from queuecore.testing.waiting import wait_until

ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN)
REFUSED = KafkaError(KafkaError._TRANSPORT, "Connect to 127.0.0.1:9092 failed: Connection refused")
FULL = ProviderUnavailable("there is no room; check that the brokers run")


class Brokers:
    """Away until `back` is set; counts those who ask."""

    def __init__(self, clock: ManualClock) -> None:
        self.back = threading.Event()
        self.probes = 0
        self.asked = 0
        self._clock = clock

    def open_probe(self) -> "Brokers":
        self.probes += 1
        return self

    def ask(self, timeout_s: float) -> None:
        self.asked += 1
        self._clock.advance(timeout_s)
        if not self.back.is_set():
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def brokers(clock: ManualClock) -> Brokers:
    return Brokers(clock)


@pytest.fixture
def outage(brokers: Brokers, clock: ManualClock) -> Iterator[Outage]:
    with closing(Outage("kafka.example:9092", brokers.open_probe, clock)) as outage:
        yield outage


class Kept(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__(logging.INFO)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    records: list[logging.LogRecord] = []
    logger, handler = logging.getLogger("queuecore.providers.kafka"), Kept(records)
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.mark.parametrize("sign", [ALL_DOWN, FULL], ids=["the library's", "ours"])
def test_an_outage_is_told_once_and_once_that_it_is_over(
    outage: Outage, brokers: Brokers, lines: list[logging.LogRecord], sign: KafkaError | ProviderUnavailable
) -> None:
    for _ in range(10):
        outage.report(REFUSED)
        outage.report(sign)
    wait_until(lambda: brokers.asked > 1)
    outage.report(sign)
    assert [line.levelname for line in lines] == ["ERROR"]
    assert "kafka.example:9092 cannot be reached (Connect to 127.0.0.1:9092 failed" in lines[0].getMessage()
    brokers.back.set()
    wait_until(lambda: not outage.is_watching)
    assert [line.levelname for line in lines] == ["ERROR", "WARNING"]
    assert "is reached again after" in lines[1].getMessage()
    assert brokers.probes == 1


def test_the_next_outage_is_told_again(outage: Outage, brokers: Brokers, lines: list[logging.LogRecord]) -> None:
    for told in (2, 4):
        brokers.back.clear()
        outage.report(ALL_DOWN)
        wait_until(lambda told=told: len(lines) == told - 1)
        brokers.back.set()
        wait_until(lambda: not outage.is_watching)
        assert len(lines) == told


def test_brokers_that_answer_are_not_away(
    outage: Outage, brokers: Brokers, clock: ManualClock, lines: list[logging.LogRecord]
) -> None:
    """Nor are they asked again soon: a full buffer may have other reasons, and many senders."""
    brokers.back.set()
    outage.report(FULL)
    wait_until(lambda: not outage.is_watching)
    outage.report(FULL)
    assert (brokers.probes, lines) == (1, [])
    clock.advance(60)
    outage.report(FULL)
    wait_until(lambda: not outage.is_watching)
    assert (brokers.probes, lines) == (2, [])


def test_one_broker_of_many_is_no_outage_but_a_reason(outage: Outage, brokers: Brokers, clock: ManualClock) -> None:
    outage.report(REFUSED)
    assert (brokers.probes, outage.reason) == (0, REFUSED.str())
    clock.advance(60)
    assert outage.reason == ""


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError._SSL])
def test_brokers_that_do_not_trust_us_are_told_of_with_the_cause(
    outage: Outage, lines: list[logging.LogRecord], code: int
) -> None:
    outage.report(KafkaError(code, "wrong password"))
    outage.report(REFUSED)
    wait_until(lambda: lines)
    assert "do not trust each other (wrong password)" in lines[0].getMessage()
    assert "check the security settings" in lines[0].getMessage()


def test_closing_ends_the_watch(outage: Outage, brokers: Brokers) -> None:
    outage.report(ALL_DOWN)
    wait_until(lambda: brokers.asked)
    outage.close()
    assert not outage.is_watching
    outage.report(ALL_DOWN)
    assert not outage.is_watching


def test_what_the_library_repeats_is_for_debugging_alone(lines: list[logging.LogRecord]) -> None:
    for facility in ("FAIL", "ERROR", "CONFWARN"):
        Chatter().log(logging.WARNING, "%s [%s] %s", facility, "switchyard#producer-1", "text")
    assert [line.getMessage() for line in lines] == ["CONFWARN [switchyard#producer-1] text"]
