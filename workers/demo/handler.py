"""A handler that fails on purpose, in the ways real ones do."""

import json
import time
from typing import Any

from queuecore.consuming.handlers import HandlerContext, handler
from queuecore.messages import Record

WORK_S = 0.015


class DownstreamUnavailable(Exception):
    """A service that this one calls did not answer."""


@handler("demo.telemetry")
def store_reading(record: Record, context: HandlerContext) -> None:
    """Check one reading and pretend to store it.

    A reading may ask for trouble in `fault`: `once` fails the first attempt, `until_replayed` fails until it
    comes back as a replay, as if the service behind had been mended meanwhile. One whose temperature is no
    number fails for good.
    """
    reading: dict[str, Any] = json.loads(record.data)
    time.sleep(WORK_S)
    fault = reading.get("fault")
    if fault == "once" and context.attempt == 1:
        raise DownstreamUnavailable(f"time-series store refused sensor {reading['sensor']}: too many connections")
    if fault == "until_replayed" and context.replayed_letter is None:
        raise DownstreamUnavailable(f"billing service answered 503 for sensor {reading['sensor']}")
    float(reading["temperature"])
