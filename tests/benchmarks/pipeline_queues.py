"""The queues that the events of the pipeline's benchmark are of. Imported where Django is set up."""

from queueapi.models import Queue, Tenant
from tests.benchmarks.pipeline_samples import PARTITIONS, queue_id, topic_of


def create_queues(number: int) -> None:
    """The first so many. Events of others make no rows."""
    tenant = Tenant.objects.create(name="Bench")
    for one in range(number):
        named = {"name": f"Bench{one}", "topic": topic_of(one), "handler": "log"}
        Queue.objects.create(id=queue_id(one), tenant=tenant, partitions=PARTITIONS, **named)
