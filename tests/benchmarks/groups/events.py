"""What it costs to report what is done: the work of the group `consuming` and publishing, with and without in turns."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.plan import PACK_SIZE
from queuecore.messages import TENANT_ID, QueueMessage
from queuecore.metrics.recorder import Recorder
from queuecore.metrics.reporting import EventReporter, create_metrics_topic
from queuecore.providers.log import LogProvider
from queuecore.queues.queues import Queues
from queuecore.submit import SubmitStrategyType
from tests.benchmarks.groups.consuming import MESSAGES, consume_all, filled, handle_nothing, plan_of
from tests.benchmarks.measuring import Benchmark, Measurement, Peer
from tests.benchmarks.workload import RATE_UNIT, messages, rate

# Of the throughput; and of the processor's time, which tells more where others use the machine.
_LEAST_OF_SILENT: Final = 0.95
_TENANTS: Final = 50
# Ten times as often as an installation does: a measurement takes a second or two.
_REPORT_EVERY_S: Final = 1.0
_PUBLISHED: Final = 50_000

Measure = Callable[[Path], float]
Clock = Callable[[], float]


@contextmanager
def benchmarks(_folder: Path) -> Iterator[Sequence[Benchmark]]:
    plain, of_tenants = messages(MESSAGES), _of_tenants()
    yield [
        _compared("consumed", _consumption, plain),
        _compared(f"consumed, of {_TENANTS} tenants", _consumption, of_tenants),
        _compared("processor, consuming", _processor_time, plain, unit="µs/message"),
        _compared(f"processor, of {_TENANTS} tenants", _processor_time, of_tenants, unit="µs/message"),
        Benchmark(
            Measurement("published", _publishing(reports=True)),
            (Peer("the same, unreported", _publishing(reports=False), _LEAST_OF_SILENT),),
            RATE_UNIT,
        ),
    ]


def _compared(
    name: str, kind: Callable[..., Measure], sent: Sequence[QueueMessage], unit: str = RATE_UNIT
) -> Benchmark:
    return Benchmark(
        subject=Measurement(name, kind(sent, reports=True)),
        peers=(Peer("the same, unreported", kind(sent, reports=False), _LEAST_OF_SILENT),),
        unit=unit,
        better="higher" if unit == RATE_UNIT else "lower",
    )


def _consumption(sent: Sequence[QueueMessage], *, reports: bool, clock: Clock = time.perf_counter) -> Measure:
    """Messages per second, from the start to the last commit."""
    plan = plan_of(SubmitStrategyType.BURST, PACK_SIZE)

    def measure(_folder: Path) -> float:
        with filled(sent) as provider, ExitStack() as reporting:
            recorder = Recorder("bench") if reports else None
            if recorder is not None:
                create_metrics_topic(provider.admin())
                reporter = EventReporter(provider.producer(), [recorder], interval_s=_REPORT_EVERY_S)
                reporting.enter_context(reporter)
            consumption = Consumption(plan, provider, handle_nothing, recording=recorder)
            return consume_all(provider, consumption, clock)

    return measure


def _processor_time(sent: Sequence[QueueMessage], *, reports: bool) -> Measure:
    """Microseconds for each message, of all threads."""
    measure = _consumption(sent, reports=reports, clock=time.process_time)
    return lambda folder: 1_000_000 / measure(folder)


def _publishing(*, reports: bool) -> Measure:
    """Messages per second that a program publishes to the log, to the last acknowledgement."""

    def measure(folder: Path) -> float:
        interval_s = _REPORT_EVERY_S if reports else None
        with closing(Queues(LogProvider(folder / "log"), metrics_interval_s=interval_s)) as queues:
            queues.create("bench", partitions=4)

            def publish() -> None:
                for key, data, _ in messages(_PUBLISHED):
                    queues.publish("bench", key, data)
                if not queues.flush():
                    raise AssertionError("not all that was published is stored")

            return rate(_PUBLISHED, publish)

    return measure


@cache
def _of_tenants() -> Sequence[QueueMessage]:
    headers = [{TENANT_ID: f"tenant-{number:032}".encode()} for number in range(_TENANTS)]
    return [
        message._replace(headers=headers[number * 7 % _TENANTS]) for number, message in enumerate(messages(MESSAGES))
    ]
