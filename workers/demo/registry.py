"""The demo's device registry, which the core has for transports. It fails on purpose, in the ways real ones do."""

import json
import logging
import threading
from typing import Final

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import RequestFailed
from queuecore.factories import Channel, Deployment, queue_factory
from queuecore.providers.base import Provider
from queuecore.requests import Request, ResponseTemplate
from queuecore.topics import ServiceType
from workers.demo.handlers import CORE_WORK_S, SLOW_S
from workers.demo.questions import SLOW, Question
from workers.demo.traffic import SENSORS

logger = logging.getLogger("switchyard.demo")

# Longer than the transport waits: some requests time out, and those that came later are answered late.
HANG_S: Final = 5.0
HANG_EVERY_S: Final = 60.0
UNKNOWN_DEVICE: Final = "unknown_device"
_LOOK_S: Final = 0.1


class Registry:
    """Knows the devices. Safe from any thread: many are answered at the same time, none while it hangs."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._is_up = threading.Event()
        self._is_up.set()

    @property
    def is_up(self) -> bool:
        return self._is_up.is_set()

    def hang(self) -> None:
        self._is_up.clear()

    def recover(self) -> None:
        self._is_up.set()

    def answer(self, request: Request) -> bytes:
        """Who the device is, as JSON. RequestFailed `unknown_device` where nobody registered it, UndecodableMessage
        where nothing can be understood."""
        question = Question.read(request.data)
        # Like a call to a database that is locked; but what nobody waits for any more keeps no thread.
        while not self._is_up.wait(_LOOK_S) and not request.cancelled:
            pass
        self._clock.sleep(SLOW_S if question.fault == SLOW else CORE_WORK_S)
        return json.dumps(_look_up(question)).encode()


def responder(provider: Provider, settings: QueueSettings, registry: Registry) -> ResponseTemplate:
    """Answers transports as the platform's core does; not yet started."""
    core = queue_factory(
        Deployment.MICROSERVICES, ServiceType.TB_CORE, settings.type, settings=settings, opened=provider
    )
    return core.responder(Channel.TRANSPORT_API_REQUESTS, registry.answer)


def hang_at_times(
    registry: Registry, stopping: threading.Event, every_s: float = HANG_EVERY_S, for_s: float = HANG_S
) -> None:
    """Until it is to stop. The registry is up when this returns."""
    while not stopping.wait(every_s):
        logger.info("the device registry hangs for %g s, as real ones do", for_s)
        registry.hang()
        stopping.wait(for_s)
        registry.recover()


def _look_up(question: Question) -> dict[str, str]:
    if not 0 <= question.sensor < SENSORS:
        raise RequestFailed(
            f"device {question.device} is not registered; register it, then let it connect again",
            error_code=UNKNOWN_DEVICE,
        )
    return {"device": str(question.device), "name": f"Sensor {question.sensor}", "profile": "thermometer"}
