"""The demo's transport, as far as it listens: it hears when the rule engine is done with a reading, and so knows how
long the whole way took."""

import json
import logging
import threading
from collections.abc import Sequence
from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.messages import Record
from queuecore.providers.base import DAY_MS, Provider, TopicSpec
from queuecore.topics import TopicPartitionInfo, notification_group, notification_topic
from workers.demo.handlers import TRANSPORT_TOPIC
from workers.hosted import told

logger = logging.getLogger("switchyard.demo")

SERVICE_ID: Final = "demo-transport"
REPORT_EVERY_S: Final = 30.0
_POLL_MS: Final = 500
_BACKOFF_S: Final = 2.0


class RoundTrips:
    """How long readings took from the transport through core and rule engine and back. For one thread."""

    def __init__(self, since_ms: int) -> None:
        self._since_ms = since_ms
        self._times_ms: list[int] = []
        self._alarms = 0

    def note(self, record: Record) -> None:
        """What was sent before this run is not counted: how long nobody was there says nothing."""
        told = json.loads(record.data)
        if told["sent_at_ms"] >= self._since_ms:
            self._times_ms.append(max(0, record.timestamp_ms - told["sent_at_ms"]))
            self._alarms += told["alarm"]

    def report(self) -> str:
        """What was noted since the last report; empty where that is nothing."""
        times, alarms = sorted(self._times_ms), self._alarms
        self._times_ms, self._alarms = [], 0
        if not times:
            return ""
        median, most = times[len(times) // 2], times[len(times) * 99 // 100]
        return f"{len(times)} round trips, half within {median} ms, 99 % within {most} ms; alarms: {alarms}"


class Transport:
    """Reads its notification topic, alone in its group, on a thread of its own."""

    def __init__(self, provider: Provider, service_id: str = SERVICE_ID, clock: Clock = SYSTEM_CLOCK) -> None:
        self._provider = provider
        self._service_id = service_id
        self._topic = notification_topic(TRANSPORT_TOPIC, service_id)
        self._clock = clock
        self._trips = RoundTrips(clock.now_ms())
        self._report_at = clock.monotonic() + REPORT_EVERY_S
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=service_id, daemon=True)
        self.heard = 0

    def start(self) -> None:
        """The topic is there once this returns."""
        self._provider.admin().create_topics([TopicSpec(self._topic, retention_ms=DAY_MS)])
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        self._stopping.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen()
            except Exception as error:
                # Whatever it is: a transport whose thread is gone would hear nothing any more, and nobody would know.
                logger.warning("the demo's transport hears nothing for %g s: %s", _BACKOFF_S, told(error))
                self._stopping.wait(_BACKOFF_S)

    def _listen(self) -> None:
        consumer = self._provider.consumer(notification_group(TRANSPORT_TOPIC, self._service_id))
        try:
            consumer.subscribe([TopicPartitionInfo(self._topic)])
            while not self._stopping.is_set():
                if records := consumer.poll(_POLL_MS):
                    self._hear(records)
                    consumer.commit()
                self._report()
        finally:
            consumer.stop()

    def _hear(self, records: Sequence[Record]) -> None:
        for record in records:
            try:
                self._trips.note(record)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                # Anybody may send to the topic; what is none of ours is passed over.
                logger.warning("%s@%d is no notification: %s", record.topic, record.offset, told(error))
        self.heard += len(records)

    def _report(self) -> None:
        if self._clock.monotonic() < self._report_at:
            return
        self._report_at += REPORT_EVERY_S
        if said := self._trips.report():
            logger.info("in the last %g s: %s", REPORT_EVERY_S, said)
