"""What each broker of a cluster shows: every one learns of a change by itself, some a moment after the others."""

from collections.abc import Collection
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PythonClientError
from kafka.protocol.metadata import MetadataRequest

from queuecore.providers.kafka.looking import Topic, parse_topics


def find_everywhere(client: KafkaAdminClient, names: Collection[str]) -> list[dict[str, Topic]]:
    """Those of these topics that there are, as each broker shows them. One that cannot be asked will learn of all there
    is when it comes back."""
    # The library has no public way to choose whom to ask.
    manager = client._manager  # noqa: SLF001
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(names)],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )

    async def ask(broker: int) -> Any:
        return (await manager.send(request, node_id=broker)).to_dict()["topics"]

    shown = []
    for broker in manager.cluster.brokers():
        try:
            answer = manager.run(ask, broker.node_id)
        except PythonClientError:
            continue
        shown.append(parse_topics(answer))
    return shown
