"""The demo's services: a core that checks what devices send, a rule engine that works on it, and an archive that keeps
it. They fail on purpose, or fall behind, in the ways real ones do."""

import json
import time
from typing import Any, Final

from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.handlers import handler
from queuecore.errors import GivenUp, UndecodableMessage
from queuecore.messages import TENANT_ID, Headers, Record
from queuecore.topics import MAIN_QUEUE, notification_topic

ALARM_QUEUE: Final = "Alarms"
ARCHIVE_QUEUE: Final = "Archive"
TRANSPORT_TOPIC: Final = "tb_transport"
TOO_WARM: Final = 32.0

CORE_WORK_S: Final = 0.002
RULE_ENGINE_WORK_S: Final = 0.010
SLOW_S: Final = 0.5
ARCHIVE_WORK_S: Final = 0.010
# Of so many readings of a partition, the first ones find the archive being compacted: some ten minutes of a quarter
# of an hour, in which about a third of what comes is kept.
ARCHIVE_ROUND: Final = 16_000
COMPACTED: Final = 4_000
COMPACTING_WORK_S: Final = 0.150
# A registry that is being restarted is back for the third attempt.
RECOVERED_AT: Final = 3

Reading = dict[str, Any]


class DownstreamUnavailable(Exception):
    """A service that this one calls did not answer."""


@handler("demo.core")
def accept_reading(record: Record, context: DeliveryContext) -> None:
    """Check one reading of a device and pass it on to the rule engine.

    What cannot be read is a dead letter at once; so is a reading of a device that nobody registered. `core_fault` asks
    for trouble with the device registry: `once` fails the first attempt, `recovering` the first two, `slow` takes long.
    """
    reading = read_reading(record)
    time.sleep(CORE_WORK_S)
    _ask_registry(reading, context)
    context.send(MAIN_QUEUE, record.key, record.data, _tenant_of(record))


@handler("demo.rule_engine")
def work_on_reading(record: Record, context: DeliveryContext) -> None:
    """Work on one reading, and raise an alarm where it is too warm. One that a transport brought is kept, and the
    transport told that it is done.

    `fault` asks for trouble: `once` fails the first attempt, `until_replayed` fails until it comes back as a replay, as
    if the service behind had been mended meanwhile. A temperature that is no number fails for good.
    """
    reading = read_reading(record)
    time.sleep(RULE_ENGINE_WORK_S)
    _ask_services(reading, context)
    is_alarm = float(reading["temperature"]) > TOO_WARM
    if is_alarm:
        context.send(ALARM_QUEUE, record.key, record.data, _tenant_of(record))
    if transport := reading.get("transport"):
        told = {"sensor": reading["sensor"], "sent_at_ms": reading["sent_at_ms"], "alarm": is_alarm}
        context.send(ARCHIVE_QUEUE, record.key, record.data, _tenant_of(record))
        topic = notification_topic(TRANSPORT_TOPIC, transport)
        context.send(topic, record.key, json.dumps(told).encode(), _tenant_of(record))


@handler("demo.archive")
def keep_reading(record: Record, context: DeliveryContext) -> None:  # noqa: ARG001
    """Keep one reading. While the archive is compacted it takes longer, and its queue falls behind."""
    is_compacted = record.offset % ARCHIVE_ROUND < COMPACTED
    time.sleep(COMPACTING_WORK_S if is_compacted else ARCHIVE_WORK_S)


def read_reading(record: Record) -> Reading:
    """UndecodableMessage for what is none."""
    try:
        reading = json.loads(record.data)
        reading["sensor"], reading["temperature"]
    except (ValueError, TypeError, KeyError) as error:
        raise UndecodableMessage(
            f"{record.topic}@{record.offset} is no reading of a device: {type(error).__name__}; "
            "send JSON with `sensor` and `temperature`"
        ) from error
    return reading  # type: ignore[no-any-return]


def _ask_registry(reading: Reading, context: DeliveryContext) -> None:
    sensor, fault = reading["sensor"], reading.get("core_fault")
    if fault == "slow":
        time.sleep(SLOW_S)
    if fault == "once" and context.attempt == 1:
        raise DownstreamUnavailable(f"device registry refused sensor {sensor}: too many connections")
    if fault == "recovering" and context.attempt < RECOVERED_AT:
        raise DownstreamUnavailable(f"device registry is restarting; sensor {sensor} was not looked up")
    if sensor < 0:
        raise GivenUp(f"sensor {sensor} is not registered; register it, then replay its readings")


def _ask_services(reading: Reading, context: DeliveryContext) -> None:
    sensor, fault = reading["sensor"], reading.get("fault")
    if fault == "once" and context.attempt == 1:
        raise DownstreamUnavailable(f"time-series store refused sensor {sensor}: too many connections")
    if fault == "until_replayed" and context.replayed_letter is None:
        raise DownstreamUnavailable(f"billing service answered 503 for sensor {sensor}")


def _tenant_of(record: Record) -> Headers:
    """Whose message it is goes with whatever comes of it."""
    tenant = record.headers.get(TENANT_ID)
    return {} if tenant is None else {TENANT_ID: tenant}
