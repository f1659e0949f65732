"""Queues that are resized by processes that die of kill -9 at each step: it ends as if none had."""

from typing import Any

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.resizing import resize_queue
from queueapi.choices import OperationState
from queueapi.models import AuditEntry, Queue
from queuecore.providers.log.admin import LogAdmin
from tests.integration.conftest import installation  # noqa: F401 a fixture
from tests.integration.queue_kit import consume, fill, numbers_of, stored
from tests.kill_points import When
from tests.reliability.test_isolation_crash import run_and_die
from tests.reliability.test_queue_life_crash import WHENS, die, finished
from workers.operations import emptying, resizing, run, runner

MESSAGES = 20

POINTS: dict[str, tuple[Any, str]] = {
    "claim": (runner, "claim_operation"),
    "create topics": (LogAdmin, "create_topics"),
    "change topics": (LogAdmin, "alter_topics"),
    "begin": (resizing, "begin_resize"),
    "publish the routing": (emptying, "publish_routing"),
    "end the former": (resizing, "end_former"),
    "remove topics": (LogAdmin, "delete_topics"),
    "forget the former": (resizing, "forget_former"),
    "note": (run, "record_progress"),
    "end": (runner, "finish_operation"),
}


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("point", POINTS)
def test_a_queue_is_resized_whoever_dies(installation, point: str, when: When) -> None:  # noqa: F811 the fixture
    queue, tenant = installation.queue, installation.tenant
    fill(queue, tenant, MESSAGES)
    consume(queue)
    before = queue.topic_names()
    operation = resize_queue(SYSTEM, queue, partitions=5)
    die(run_and_die, operation.pk, POINTS[point], when)
    assert finished(operation).state == OperationState.SUCCEEDED
    after = Queue.objects.get(pk=queue.pk)
    assert (after.partitions, after.former_numbers) == (5, range(0))
    assert not before & set(runtime.provider().admin().topics())
    fill(after, tenant, MESSAGES)
    assert stored(after) == numbers_of(MESSAGES)
    assert AuditEntry.objects.filter(object_id=str(queue.pk), action="resize").count() == 1
