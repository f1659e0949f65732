"""`python -m workers.demo.core_api`: a core that answers transports' questions about devices, until told to stop."""

import logging
import os
import signal
import threading

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from queueapi.config import config  # noqa: E402 - Django must be set up before models are imported
from queueapi.runtime import close_provider, provider  # noqa: E402
from queuecore.errors import QueueError  # noqa: E402
from workers.demo.registry import Registry, hang_at_times, responder  # noqa: E402

logger = logging.getLogger("switchyard.demo")


def main() -> int:
    registry, stopping = Registry(), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    try:
        with responder(provider(), config().queue, registry) as answering:
            logger.info("answering %s", answering.topics.name)
            hang_at_times(registry, stopping)
    except QueueError as error:
        logger.error("the demo's core answers nothing: %s", error)
        return 1
    finally:
        close_provider()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
