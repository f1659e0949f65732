"""Who reads for which group, as the brokers tell it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import GroupIdNotFoundError, for_code

from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.python_client import parse_refusal
from queuecore.providers.kafka.records import from_kafka
from queuecore.topics import ProviderPartition

Members = Mapping[str, frozenset[ProviderPartition]]

# Of groups that read topics; one without a protocol has committed offsets alone. Others are Kafka Connect's and such.
_READING: Final = frozenset({"consumer", ""})
_WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})


@dataclass(frozen=True, slots=True)
class ListedGroup:
    name: str
    has_members: bool
    is_classic: bool


def list_groups(client: KafkaAdminClient) -> list[ListedGroup]:
    """All groups of consumers."""
    # Named, for the client may not have heard of a new broker.
    brokers = [one["broker_id"] for one in client.describe_cluster()["brokers"] if not one.get("is_fenced")]
    return [
        ListedGroup(
            group["group_id"],
            has_members=group["group_state"] not in _WITHOUT_MEMBERS,
            is_classic=group["group_type"] != "consumer",
        )
        for group in client.list_groups(brokers)
        if group["protocol_type"] in _READING
    ]


def classic_members(client: KafkaAdminClient, names: list[str]) -> dict[str, Members]:
    """By group; those that are gone when they are asked about are left out."""
    found: dict[str, Members] = {}
    for name, group in client.describe_groups(names).items():
        code, _ = parse_refusal(group["error"]) if group["error"] else (0, "")
        if code == 0:
            found[name] = {one["member_id"]: _held(one["member_assignment"]) for one in group["members"]}
        elif code != GroupIdNotFoundError.errno:
            raise for_code(code)
    return found


def other_members(connection: Connection, names: list[str]) -> dict[str, Members]:
    """The same of groups of the protocol `consumer`, which librdkafka alone can describe: in one call, but with a
    request for each."""
    if not names:
        return {}
    client = connection.open(AdminClient, {})
    found: dict[str, Members] = {}
    for name, future in client.describe_consumer_groups(names, request_timeout=connection.timeout_s).items():
        try:
            described = future.result()
        except KafkaException as error:
            if error.args[0].code() != GroupIdNotFoundError.errno:
                raise connection.explain(error, f"describe group {name}") from error
        else:
            found[name] = {
                one.member_id: frozenset(map(from_kafka, one.assignment.topic_partitions)) for one in described.members
            }
    return found


def _held(assignment: Any) -> frozenset[ProviderPartition]:
    """Nothing while the member is only joining."""
    topics = assignment["assigned_partitions"] if isinstance(assignment, dict) else []
    return frozenset(ProviderPartition(one["topic"], number) for one in topics for number in one["partitions"])
