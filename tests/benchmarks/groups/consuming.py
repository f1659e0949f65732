"""What consuming adds to reading: packs, strategies, handlers' threads, settling. In memory, with a handler that does
next to nothing."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import PACK_SIZE, ConsumptionPlan
from queuecore.messages import QueueMessage, Record
from queuecore.processing import ProcessingStrategyType, processing_strategy
from queuecore.providers.base import TopicSpec
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.submit import SubmitStrategyType, submit_strategy
from queuecore.topics import TopicPartitionInfo
from tests.benchmarks.acknowledging import send_and_count
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.workload import RATE_UNIT, check_count, messages, rate

INFO = TopicPartitionInfo("bench", 0)
GROUP = "bench"
SMALL, LARGE = 100, 8_000

# A second at the rates aimed for.
MESSAGES = 200_000
_POLL_MS = 1_000
_GOALS = {SubmitStrategyType.BURST: 200_000, SubmitStrategyType.SEQUENTIAL_BY_ORIGINATOR: 100_000}
# What a message costs in a large pack, of what it costs in one of the usual size.
_MOST_GROWTH = 1.5


@contextmanager
def benchmarks(_folder: Path) -> Iterator[Sequence[Benchmark]]:
    yield [*map(_throughput, SubmitStrategyType), *map(_growth, SubmitStrategyType)]


def _throughput(submit: SubmitStrategyType) -> Benchmark:
    return Benchmark(
        subject=Measurement(f"{submit}, packs of {PACK_SIZE:,}", _consumption(submit, PACK_SIZE)),
        peers=(Peer("poll, call, commit", _bare_loop),),
        unit=RATE_UNIT,
        goal=_GOALS.get(submit),
    )


def _growth(submit: SubmitStrategyType) -> Benchmark:
    return Benchmark(
        subject=Measurement(f"{submit}, packs of {LARGE:,}", _cost(submit, LARGE)),
        peers=(
            Peer(f"packs of {PACK_SIZE:,}", _cost(submit, PACK_SIZE), 1 / _MOST_GROWTH),
            Peer(f"packs of {SMALL:,}", _cost(submit, SMALL)),
        ),
        unit="µs/message",
        better="lower",
    )


def _cost(submit: SubmitStrategyType, pack_size: int) -> Callable[[Path], float]:
    measure = _consumption(submit, pack_size)
    return lambda folder: 1_000_000 / measure(folder)


def _consumption(submit: SubmitStrategyType, pack_size: int) -> Callable[[Path], float]:
    """Messages per second, from the start to the last commit."""
    plan = plan_of(submit, pack_size)

    def measure(_folder: Path) -> float:
        with filled(messages(MESSAGES)) as provider:
            return consume_all(provider, Consumption(plan, provider, handle_nothing))

    return measure


def plan_of(submit: SubmitStrategyType, pack_size: int) -> ConsumptionPlan:
    return ConsumptionPlan(
        queue="bench",
        group=GROUP,
        infos=(INFO,),
        handler_name="trivial",
        submit=submit_strategy(submit, pack_size),
        processing=processing_strategy(ProcessingStrategyType.RETRY_FAILED_AND_TIMED_OUT),
        pack_size=pack_size,
        max_open=10 * pack_size,
    )


def consume_all(
    provider: MemoryProvider, consumption: Consumption, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Messages per second of one that has not begun."""
    result = rate(MESSAGES, lambda: _consume(consumption), clock)
    consumption.stop(1.0)
    _check(provider)
    return result


def _consume(consumption: Consumption) -> None:
    consumption.start()
    while consumption.counts.handled < MESSAGES:
        consumption.wait_for_progress(timeout_s=1.0)


def _bare_loop(_folder: Path) -> float:
    """The same without any of it."""
    with filled(messages(MESSAGES)) as provider:
        consumer = provider.consumer(GROUP, max_poll_records=PACK_SIZE)
        consumer.subscribe([INFO])

        def loop() -> None:
            left = MESSAGES
            while left:
                pack = consumer.poll(_POLL_MS)
                for record in pack:
                    handle_nothing(record, None)
                consumer.commit({INFO.place: pack[-1].offset + 1})
                left -= len(pack)

        result = rate(MESSAGES, loop)
        _check(provider)
    return result


def handle_nothing(record: Record, _context: object) -> None:
    if not record.data:
        raise ValueError(f"{record} is empty")


@contextmanager
def filled(sent: Sequence[QueueMessage]) -> Iterator[MemoryProvider]:
    """With these to be consumed."""
    with closing(MemoryProvider(MemoryStorage(capacity=len(sent)))) as provider:
        provider.admin().create_topics([TopicSpec(INFO.full_topic_name)])
        send_and_count(provider.producer(), INFO, sent)
        yield provider


def _check(provider: MemoryProvider) -> None:
    committed = provider.admin().committed_offsets({GROUP: [INFO.place]})[GROUP]
    check_count("committed", committed.get(INFO.place, 0), MESSAGES)
