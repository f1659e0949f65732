"""`python -m workers.demo`: sample tenants, a queue, and traffic until told to stop."""

import logging
import os
import signal

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from queueapi.runtime import close_provider  # noqa: E402 - Django must be set up before models are imported
from queuecore.errors import QueueError  # noqa: E402
from workers.demo.seed import seed  # noqa: E402
from workers.demo.traffic import Traffic  # noqa: E402

logger = logging.getLogger("switchyard.demo")


def main() -> int:
    queue, tenants = seed()
    traffic = Traffic(queue, tenants)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: traffic.stop())
    logger.info("publishing to %s for %s", queue.name, ", ".join(tenant.name for tenant in tenants))
    try:
        traffic.run()
    except QueueError as error:
        logger.error("the demo's traffic stops: %s", error)
        return 1
    finally:
        close_provider()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
