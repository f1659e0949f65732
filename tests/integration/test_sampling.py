"""Offset samples of what the configuration says."""

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.queues import create_queue
from queueapi.models import Queue
from workers.sampling import publish_samples


@pytest.mark.parametrize("field", ["delivery", "dlq_on_limit", "service_type"])
def test_a_row_that_cannot_be_understood_leaves_the_others_sampled(installation, field, caplog) -> None:
    create_queue(SYSTEM, installation.queue.tenant, name="Other", topic="other", handler="log", partitions=2)
    Queue.objects.filter(pk=installation.queue.pk).update(**{field: "later"})
    assert publish_samples(runtime.provider(), "sampler") == 2
    assert "queue Telemetry is not sampled: there is no" in caplog.text
