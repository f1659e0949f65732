"""`python -m workers.demo`: sample tenants and queues, and a transport with its devices until told to stop."""

import logging
import os
import signal

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from queueapi.runtime import close_provider, provider  # noqa: E402 - Django must be set up before models are imported
from queuecore.errors import QueueError  # noqa: E402
from workers.demo.seed import seed  # noqa: E402
from workers.demo.traffic import Traffic  # noqa: E402
from workers.demo.transport import SERVICE_ID, Transport  # noqa: E402

logger = logging.getLogger("switchyard.demo")


def main() -> int:
    sample = seed()
    transport = Transport(provider())
    traffic = Traffic(sample, SERVICE_ID)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: traffic.stop())
    names = ", ".join(tenant.name for tenant in (*sample.tenants, sample.noisy))
    logger.info("publishing to %s for %s", sample.core.name, names)
    try:
        transport.start()
        traffic.run()
    except QueueError as error:
        logger.error("the demo's traffic stops: %s", error)
        return 1
    finally:
        transport.stop()
        close_provider()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
