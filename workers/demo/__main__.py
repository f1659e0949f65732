"""`python -m workers.demo`: sample tenants and queues, and a transport with its devices until told to stop."""

import logging
import os
import signal
from contextlib import ExitStack

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from queueapi.config import config  # noqa: E402 - Django must be set up before models are imported
from queueapi.runtime import close_provider, provider  # noqa: E402
from queuecore.errors import QueueError  # noqa: E402
from workers.demo.asking import Asking  # noqa: E402
from workers.demo.questions import questions  # noqa: E402
from workers.demo.seed import Sample, seed  # noqa: E402
from workers.demo.traffic import Traffic  # noqa: E402
from workers.demo.transport import SERVICE_ID, Transport  # noqa: E402
from workers.demo.watching import watched  # noqa: E402

logger = logging.getLogger("switchyard.demo")


def main() -> int:
    sample = seed()
    traffic = Traffic(sample, SERVICE_ID)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: traffic.stop())
    names = ", ".join(tenant.name for tenant in (*sample.tenants, sample.noisy))
    logger.info("publishing to %s for %s", sample.core.name, names)
    try:
        with ExitStack() as stopping:
            stopping.callback(close_provider)
            _start_transport(sample, stopping)
            traffic.run()
    except QueueError as error:
        logger.error("the demo's traffic stops: %s", error)
        return 1
    return 0


def _start_transport(sample: Sample, stopping: ExitStack) -> None:
    transport = Transport(provider())
    transport.start()
    stopping.callback(transport.stop)
    asking = Asking(provider(), config().queue, questions(sample))
    stopping.enter_context(watched(provider(), asking.template, config().metrics_listen, config().metrics_interval_s))
    asking.start()
    stopping.callback(asking.stop)


if __name__ == "__main__":
    raise SystemExit(main())
