"""Who reads for which group, as the brokers tell it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import GroupAuthorizationFailedError, GroupIdNotFoundError, for_code

from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.python_client import parse_refusal
from queuecore.providers.kafka.records import from_kafka
from queuecore.topics import ProviderPartition

Members = Mapping[str, frozenset[ProviderPartition]]

# Of groups that read topics; one without a protocol has committed offsets alone. Others are Kafka Connect's and such.
_READING: Final = frozenset({"consumer", ""})
_WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """`members` is empty for one of the protocol `consumer`, whoever reads for it."""

    name: str
    has_members: bool
    is_classic: bool
    members: Members


def find_groups(client: KafkaAdminClient) -> list[FoundGroup]:
    """All groups of consumers that this client may know of. Who may look at the cluster is told the names of all, and
    refused when it asks for a stranger's: hence each broker is asked for those that it keeps."""
    # Named, for the client may not have heard of a new broker.
    brokers = [one["broker_id"] for one in client.describe_cluster()["brokers"] if not one.get("is_fenced")]
    return [group for broker in brokers for group in _kept_by(client, broker)]


def _kept_by(client: KafkaAdminClient, broker: int) -> Iterator[FoundGroup]:
    listed = {one["group_id"]: one for one in client.list_groups([broker]) if one["protocol_type"] in _READING}
    described = client.describe_groups(list(listed), group_coordinator_id=broker) if listed else {}
    for name, group in described.items():
        code, _ = parse_refusal(group["error"]) if group["error"] else (0, "")
        is_classic = listed[name]["group_type"] != "consumer"
        if code == GroupAuthorizationFailedError.errno or (code == GroupIdNotFoundError.errno and is_classic):
            continue  # a stranger's, or gone
        if code not in (0, GroupIdNotFoundError.errno):
            raise for_code(code)
        members = {one["member_id"]: _held(one["member_assignment"]) for one in group["members"]}
        yield FoundGroup(name, listed[name]["group_state"] not in _WITHOUT_MEMBERS, is_classic, members)


def members_of(client: KafkaAdminClient, name: str) -> Collection[str] | None:
    """The members of one group; None for one of the protocol `consumer`, of which `other_members` tells."""
    group = client.describe_groups([name])[name]
    code, _ = parse_refusal(group["error"]) if group["error"] else (0, "")
    if code == GroupIdNotFoundError.errno:
        return None
    if code:
        raise for_code(code)
    return {one["member_id"] for one in group["members"]}


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
