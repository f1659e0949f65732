"""What each broker of a cluster shows: every one learns of a change by itself, some a moment after the others."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PythonClientError
from kafka.protocol.metadata import MetadataRequest

from queuecore.providers.kafka.looking import Topic, parse_topics


def all_show(client: KafkaAdminClient, names: Collection[str], what: Callable[[Mapping[str, Topic]], bool]) -> bool:
    """Whether `what` is true of these topics as they are on every broker that answers, of which there must be one."""
    shown = find_everywhere(client, names)
    return bool(shown) and all(map(what, shown))


def find_everywhere(client: KafkaAdminClient, names: Collection[str]) -> list[dict[str, Topic]]:
    """Those of these topics that there are, as each broker shows them. One that cannot be asked will learn of all there
    is when it comes back.

    In public the library asks for topics only whom it likes, and so does librdkafka; hence its manager, which is
    private, but takes the broker.
    """
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
