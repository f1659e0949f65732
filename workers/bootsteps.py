"""Where Celery's life and the consumers' meet."""

import logging
from typing import TYPE_CHECKING, Any

from celery import bootsteps
from celery.worker import state

from queueapi.identity import service_id as process_id
from queuecore.collector import collect_seldom

if TYPE_CHECKING:
    from workers.host import ConsumerHost

logger = logging.getLogger(__name__)

EXIT_HOST_DIED = 70


class ConsumerHostStep(bootsteps.StartStopStep):
    """Starts the consumer host with its worker and stops it with it, when `--host-consumers` is given.

    Consumers run in threads that begin after the worker's pool: nothing is opened before a fork.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, host_consumers: bool = False, service_id: str = "", **options: Any) -> None:
        self.enabled = host_consumers
        self._service_id = service_id
        self._host: ConsumerHost | None = None
        super().__init__(worker, **options)

    def start(self, worker: Any) -> None:
        # Models can be imported only now: Celery has set Django up after this module was loaded.
        from queueapi.config import config
        from workers.host import ConsumerHost

        service_id = self._service_id or config().service.id or process_id()
        self._host = ConsumerHost(service_id, on_death=_end_worker, gives_way=_is_cold)
        self._host.start()
        collect_seldom()
        logger.info("consumer host %s started in worker %s", self._host.service_id, worker.hostname)

    def stop(self, worker: Any) -> None:
        """Warm shutdown (SIGTERM): messages at hand are finished and committed. A SIGQUIT meanwhile ends the wait."""
        if self._host is not None:
            self._host.stop()
            logger.info("consumer host of %s stopped", worker.hostname)

    def terminate(self, worker: Any) -> None:
        """Cold shutdown (SIGQUIT): at once. Celery comes here only after its next turns; by then the host's own thread
        has seen to it that nothing more is handed over."""
        if self._host is not None:
            self._host.give_way()
            logger.info("consumer host of %s gave way; what was at hand is delivered again", worker.hostname)


def _is_cold() -> bool:
    """Celery's handler of SIGQUIT sets this at once, also while steps are being stopped."""
    return state.should_terminate not in (None, False)


def _end_worker(reason: str) -> None:
    """A worker whose consumers died must not look alive: end it, its parent starts another."""
    logger.critical("ending this worker, it will be started again: %s", reason)
    state.should_stop = EXIT_HOST_DIED
