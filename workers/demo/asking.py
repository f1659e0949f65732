"""The demo's transport, as far as it asks: who its devices are, before it believes them."""

import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import RequestFailed, UndecodableMessage
from queuecore.factories import Channel, Deployment, queue_factory
from queuecore.providers.base import Provider
from queuecore.requests import LAG_BOUNDS_MS, RequestTemplate, ResponseFuture, lag_percentile
from queuecore.topics import ServiceType
from workers.demo.questions import Question
from workers.demo.transport import REPORT_EVERY_S, SERVICE_ID
from workers.hosted import told

logger = logging.getLogger("switchyard.demo")

PER_S: Final = 15.0
TIMEOUT_MS: Final = 3_000
_BACKOFF_S: Final = 2.0
_STOP_WITHIN_S: Final = 10.0


class Answers:
    """What became of questions. For one thread; others may look."""

    def __init__(self) -> None:
        # Bounded by the fleet: names of devices, by their ids.
        self.devices: dict[str, str] = {}
        # Since the last report, by code: the core's own, and those of requests that had no answer.
        self.errors: Counter[str] = Counter()
        self._reported: Sequence[int] = (0,) * (len(LAG_BOUNDS_MS) + 1)

    def note(self, ended: ResponseFuture) -> None:
        error = ended.exception(0)
        if error is None:
            self._note_device(ended.result(0).data)
        elif isinstance(error, RequestFailed):
            self.errors[error.error_code] += 1
        else:
            self.errors[error.code] += 1

    def report(self, lag_buckets: Sequence[int]) -> str:
        """What happened since the last report; the buckets are of all times, as a template counts them."""
        since = [now - before for now, before in zip(lag_buckets, self._reported, strict=True)]
        errors, self._reported, self.errors = self.errors, tuple(lag_buckets), Counter()
        half_ms, most_ms = lag_percentile(since, 50), lag_percentile(since, 99)
        times = f", half within {half_ms:g} ms, 99 % within {most_ms:g} ms" if any(since) else ""
        failures = ", ".join(f"{code}: {count}" for code, count in sorted(errors.items())) or "none"
        return f"{sum(since)} answers from the core{times}; failures: {failures}; devices known: {len(self.devices)}"

    def _note_device(self, data: bytes) -> None:
        try:
            device = json.loads(data)
            self.devices[device["device"]] = device["name"]
        except (ValueError, TypeError, KeyError, RecursionError):
            self.errors[UndecodableMessage.code] += 1


class Asking:
    """Asks the core about one device after the other, at a steady rate, on a thread of its own.

    A core that is away or slow is no reason to stop: each question ends by itself, and the next is asked. It ends
    when another instance runs under its id and has the answers, which its template has said then."""

    def __init__(
        self,
        provider: Provider,
        settings: QueueSettings,
        questions: Iterator[Question],
        *,
        per_s: float = PER_S,
        timeout_ms: int = TIMEOUT_MS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.template = requester(provider, settings)
        self.answers = Answers()
        self._questions = questions
        self._pause_s = 1 / per_s
        # The installation may allow less.
        self._timeout_ms = min(timeout_ms, self.template.options.max_request_timeout_ms)
        self._clock = clock
        self._report_at = clock.monotonic() + REPORT_EVERY_S
        # No more than are asked within the timeout.
        self._waiting: list[ResponseFuture] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{SERVICE_ID}-asking", daemon=True)

    def start(self) -> None:
        """The topics are there once this returns. Raises what the provider does."""
        self.template.start()
        self._thread.start()

    def stop(self) -> None:
        """What is pending is given up: whoever answers may have stopped already."""
        self._stopping.set()
        self._thread.join(_STOP_WITHIN_S)
        self.template.stop()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_s) and self.template.error is None:
            try:
                self._ask()
                self._collect()
                self._report()
            except Exception as error:
                # Whatever it is: a transport whose thread is gone would ask nothing any more, and nobody would know.
                logger.warning("the demo's transport asks nothing for %g s: %s", _BACKOFF_S, told(error))
                self._stopping.wait(_BACKOFF_S)

    def _ask(self) -> None:
        self._waiting.append(self.template.send(next(self._questions).message(), timeout_ms=self._timeout_ms))

    def _collect(self) -> None:
        waiting = self._waiting
        self._waiting = []
        for future in waiting:
            if future.done():
                self.answers.note(future)
            else:
                self._waiting.append(future)

    def _report(self) -> None:
        if self._clock.monotonic() < self._report_at:
            return
        self._report_at += REPORT_EVERY_S
        logger.info("in the last %g s: %s", REPORT_EVERY_S, self.answers.report(self.template.counts.lag_buckets))


def requester(provider: Provider, settings: QueueSettings) -> RequestTemplate:
    """Asks as the platform's transport does; not yet started."""
    transport = queue_factory(
        Deployment.MICROSERVICES,
        ServiceType.TB_TRANSPORT,
        settings.type,
        settings=settings,
        service_id=SERVICE_ID,
        opened=provider,
    )
    return transport.requester(Channel.TRANSPORT_API_REQUESTS)
