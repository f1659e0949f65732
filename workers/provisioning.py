"""The topics of hosted queues at the provider."""

import logging

from queueapi.actions.provisioning import provision_queue
from queueapi.choices import CONSUMED_QUEUE_STATES
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
        if self._are_there or not self._are_wanted():
            return
        try:
            provision_queue(self.queue)
        except QueueError as error:
            logger.warning("cannot see to the topics of queue %s: %s", self.queue.name, error)
        else:
            self._are_there = True

    def _are_wanted(self) -> bool:
        """Asked for now: what somebody deletes must not come back."""
        return Queue.objects.filter(pk=self.queue.pk, state__in=CONSUMED_QUEUE_STATES).exists()

    def miss(self) -> None:
        """One of them is not there."""
        self._are_there = False
