"""How many copies a topic has, and on which brokers they are."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kafka import KafkaAdminClient

from queuecore.errors import ConfigurationError
from queuecore.providers.kafka.looking import TopicLooking, existing_topics
from queuecore.providers.kafka.python_client import seeking_controller
from queuecore.topics import ProviderPartition


class ReplicationAdmin(TopicLooking):
    def _replicate(self, client: KafkaAdminClient, factors: Mapping[str, int]) -> None:
        """Give every partition of these topics so many replicas, and wait until they are up to date."""
        if not factors:
            return
        names = ", ".join(sorted(factors))
        racks = _racks(client)
        for name, factor in factors.items():
            if factor > len(racks):
                raise ConfigurationError(
                    f"topic {name!r} cannot have {factor} replicas on {len(racks)} brokers; start more brokers, or ask "
                    "for fewer replicas"
                )
        wanted = spread(_replicas(client, factors), factors, racks)
        with seeking_controller():
            outcomes = client.alter_partition_reassignments(wanted)
        for error in outcomes.values():
            if error is not None:
                raise self._refused(error.errno, None, f"change the replicas of topics {names}")
        self._wait_until(
            lambda: _replicas(client, factors, in_sync=True) == wanted,
            f"topics {names} do not have all their replicas yet (the brokers go on making them)",
        )


def spread(
    now: Mapping[ProviderPartition, Sequence[int]], factors: Mapping[str, int], racks: Mapping[int, str]
) -> dict[ProviderPartition, list[int]]:
    """By partition the brokers that are to have a copy, the one to lead first.

    Who is first now stays. A further copy goes to a rack without one if there is any, and there to the broker that has
    the fewest. `racks` names the brokers that run.
    """
    load = Counter(broker for brokers in now.values() for broker in brokers)
    wanted: dict[ProviderPartition, list[int]] = {}
    for place, brokers in now.items():
        chosen = list(brokers[: factors[place.topic]])
        while len(chosen) < factors[place.topic]:
            taken = {racks.get(broker) for broker in chosen}
            ranks = {broker: (racks[broker] in taken, load[broker], broker) for broker in racks if broker not in chosen}
            best = min(ranks, key=ranks.__getitem__)
            chosen.append(best)
            load[best] += 1
        wanted[place] = chosen
    return wanted


def _racks(client: KafkaAdminClient) -> dict[int, str]:
    """Where each broker that runs is; empty where it does not say."""
    brokers = client.describe_cluster()["brokers"]
    return {one["broker_id"]: one["rack"] or "" for one in brokers if not one.get("is_fenced")}


def _replicas(
    client: KafkaAdminClient, names: Mapping[str, int], *, in_sync: bool = False
) -> dict[ProviderPartition, list[int]]:
    """Of the partitions of these topics; with `in_sync` only of those whose replicas are all up to date."""
    return {
        ProviderPartition(name, number): list(one.replicas)
        for name, topic in existing_topics(client, names).items()
        for number, one in enumerate(topic.partitions)
        if not in_sync or len(one.in_sync) == len(one.replicas)
    }
