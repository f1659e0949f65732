"""Our side of the benchmarks of requests: who asks and who answers, over each provider."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from queuecore.providers.base import Provider
from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider
from queuecore.requests import (
    Request,
    RequestOptions,
    RequestTemplate,
    RequestTopics,
    ResponseFuture,
    ResponseTemplate,
)
from tests.benchmarks.kafka_broker import BY_DEFAULT
from tests.benchmarks.processes import Job, beside, run_together
from tests.benchmarks.requests_load import Load, Told, one_by_one

# What is measured: given the load, once all is warm.
Measured = Callable[[Load], float]
# Opens the provider, in whichever process it is called. Has to be picklable.
Open = Callable[[], Provider]
# How a template is asked. Has to be picklable.
LoadOn = Callable[[RequestTemplate], Load]

BASE: Final = "bench"
TOPICS: Final = RequestTopics.named(BASE)
SERVICE_ID: Final = "asking"
# What is sent on schedule piles up while the machine is busy with others, and has to be measured, not refused.
OPTIONS: Final = RequestOptions(max_pending_requests=100_000)

_WARM_UP: Final = 5_000


def measure_within(measured: Measured, load_on: LoadOn) -> float:
    """Requester and responder in one process, over memory."""
    [outcome] = run_together([partial(_within, measured, load_on)])
    return float(outcome.result)


def measure_between(open_provider: Open, measured: Measured, load_on: LoadOn, topics: RequestTopics = TOPICS) -> float:
    """Requester and responder in two processes, over a provider that both can open."""
    return measure_pair(
        partial(_answering, open_provider, topics), partial(_asking, open_provider, topics, measured, load_on)
    )


def measure_pair(responder: Job, requester: Job) -> float:
    """What the requester finds while the responder is there."""
    with beside(responder):
        [outcome] = run_together([requester])
    return float(outcome.result)


def open_log(folder: Path) -> Provider:
    return LogProvider(folder)


def open_kafka(servers: str) -> Provider:
    return KafkaProvider(servers, producing=BY_DEFAULT)


def warmed(load: Load, count: int = _WARM_UP) -> Load:
    """The first answers come once all groups are joined, and the first of anything takes longer."""
    load.run(count)
    return load


@contextmanager
def answering(provider: Provider, topics: RequestTopics = TOPICS) -> Iterator[None]:
    with ResponseTemplate(provider, topics, _echo):
        yield


@contextmanager
def asking(
    provider: Provider, topics: RequestTopics = TOPICS, options: RequestOptions = OPTIONS
) -> Iterator[RequestTemplate]:
    with RequestTemplate(provider, topics, SERVICE_ID, options) as template:
        yield template


def singly(template: RequestTemplate) -> Load:
    """Each request by a call of its own."""
    return Load(one_by_one(lambda data, told: template.send(data).add_done_callback(told)), _answer)


def together(template: RequestTemplate) -> Load:
    """As many requests by one call as may be sent."""

    def ask_many(payloads: Sequence[bytes], told: Sequence[Told]) -> None:
        for future, one in zip(template.send_many(payloads), told, strict=True):
            future.add_done_callback(one)

    return Load(ask_many, _answer)


def _answer(future: ResponseFuture) -> bytes:
    return future.result(0).data


def _echo(request: Request) -> bytes:
    return request.data


@contextmanager
def _within(measured: Measured, load_on: LoadOn) -> Iterator[Callable[[], float]]:
    with closing(MemoryProvider()) as provider, answering(provider), asking(provider) as template:
        load = warmed(load_on(template))
        yield lambda: measured(load)


@contextmanager
def _answering(open_provider: Open, topics: RequestTopics) -> Iterator[Callable[[], None]]:
    with closing(open_provider()) as provider, answering(provider, topics):
        yield lambda: None


@contextmanager
def _asking(
    open_provider: Open, topics: RequestTopics, measured: Measured, load_on: LoadOn
) -> Iterator[Callable[[], float]]:
    with closing(open_provider()) as provider, asking(provider, topics) as template:
        load = warmed(load_on(template))
        yield lambda: measured(load)
