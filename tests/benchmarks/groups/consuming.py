"""What consuming adds to reading: packs, strategies, handlers' threads, settling. In memory, with a handler that does
next to nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import PACK_SIZE, ConsumptionPlan
from queuecore.messages import Record
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
_MESSAGES = 200_000
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
    plan = ConsumptionPlan(
        queue="bench",
        group=GROUP,
        infos=(INFO,),
        handler_name="trivial",
        submit=submit_strategy(submit, pack_size),
        processing=processing_strategy(ProcessingStrategyType.RETRY_FAILED_AND_TIMED_OUT),
        pack_size=pack_size,
        max_open=10 * pack_size,
    )

    def measure(_folder: Path) -> float:
        with _filled() as provider:
            consumption = Consumption(plan, provider, _handle)
            result = rate(_MESSAGES, lambda: _consume(consumption))
            consumption.stop(1.0)
            _check(provider)
        return result

    return measure


def _consume(consumption: Consumption) -> None:
    consumption.start()
    while consumption.counts.handled < _MESSAGES:
        consumption.wait_for_progress(timeout_s=1.0)


def _bare_loop(_folder: Path) -> float:
    """The same without any of it."""
    with _filled() as provider:
        consumer = provider.consumer(GROUP, max_poll_records=PACK_SIZE)
        consumer.subscribe([INFO])

        def loop() -> None:
            left = _MESSAGES
            while left:
                pack = consumer.poll(_POLL_MS)
                for record in pack:
                    _handle(record, None)
                consumer.commit({INFO.place: pack[-1].offset + 1})
                left -= len(pack)

        result = rate(_MESSAGES, loop)
        _check(provider)
    return result


def _handle(record: Record, _context: object) -> None:
    if not record.data:
        raise ValueError(f"{record} is empty")


@contextmanager
def _filled() -> Iterator[MemoryProvider]:
    with closing(MemoryProvider(MemoryStorage(capacity=_MESSAGES))) as provider:
        provider.admin().create_topics([TopicSpec(INFO.full_topic_name)])
        send_and_count(provider.producer(), INFO, messages(_MESSAGES))
        yield provider


def _check(provider: MemoryProvider) -> None:
    committed = provider.admin().committed_offsets({GROUP: [INFO.place]})[GROUP]
    check_count("committed", committed.get(INFO.place, 0), _MESSAGES)
