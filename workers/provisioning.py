"""The topics of hosted queues at the provider."""

import logging

from queueapi.actions.queues import provision_queue
from queueapi.models import Queue
from queuecore.errors import QueueError

logger = logging.getLogger(__name__)


class QueueTopics:
    """One queue's. A provider that was away when the queue was created or changed has not all of them, so they are
    seen to once, and again when one was missed. For the host's thread."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._are_there = False

    def ensure(self) -> None:
        """Where that fails, whoever needs one of them says what is wrong."""
        if self._are_there:
            return
        try:
            provision_queue(self.queue)
        except QueueError as error:
            logger.warning("cannot see to the topics of queue %s: %s", self.queue.name, error)
        else:
            self._are_there = True

    def miss(self) -> None:
        """One of them is not there."""
        self._are_there = False
