"""What is seen of the demo's requests: samples for the pipeline, and metrics for Prometheus."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

from queueapi.prometheus import shown
from queuecore.providers.base import Provider
from queuecore.requests import RequestTemplate
from queuecore.requests.prometheus import RequestCollector
from queuecore.requests.reporting import RequestReporter

METRICS_LISTEN: Final = "127.0.0.1:9464"


@contextmanager
def watched(provider: Provider, template: RequestTemplate, listen: str = "", interval_s: int = 10) -> Iterator[None]:
    """Meanwhile the template is sampled so often, where that is more than 0, and shown at this address, or at
    `METRICS_LISTEN`, beside what the process publishes. The last sample is taken when this ends: end it after the
    template, and nothing is missed."""
    producer = provider.producer()
    sampled = RequestReporter(producer, [template], interval_s=interval_s) if interval_s else nullcontext()
    try:
        with sampled, shown(RequestCollector([template]), listen or METRICS_LISTEN):
            yield
    finally:
        producer.stop()
