"""What is seen of the demo's requests: samples for the pipeline, and metrics for Prometheus."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from queuecore.errors import ConfigurationError
from queuecore.providers.base import Provider
from queuecore.requests import RequestTemplate
from queuecore.requests.prometheus import RequestCollector
from queuecore.requests.reporting import RequestReporter
from workers.metrics import MetricsServer

logger = logging.getLogger("switchyard.demo")

METRICS_LISTEN: Final = "127.0.0.1:9464"


@contextmanager
def watched(provider: Provider, template: RequestTemplate, listen: str = "") -> Iterator[None]:
    """Meanwhile the template is sampled, and shown at this address, or at `METRICS_LISTEN`. The last sample is taken
    when this ends: end it after the template, and nothing is missed."""
    with ExitStack() as stopping:
        producer = provider.producer()
        stopping.callback(producer.stop)
        stopping.enter_context(RequestReporter(producer, [template]))
        if (server := _show(template, listen or METRICS_LISTEN)) is not None:
            stopping.enter_context(server)
        yield


def _show(template: RequestTemplate, listen: str) -> MetricsServer | None:
    try:
        server = MetricsServer(listen, [RequestCollector([template])])
    except ConfigurationError as error:
        # Perhaps of another demo on this machine: no reason not to have this one.
        logger.warning("there are no metrics for Prometheus: %s", error)
        return None
    logger.info("metrics for Prometheus are at %s", server.url)
    return server
