"""A group's state as text, for a provider that keeps it in one row.

One JSON object, partitions gathered by topic: {"a.topic": [0, 1, 2]}. Members come in the order they joined, each with
what it wants, what is planned for it and what it owns; and with its member id, where it has one. Those that were
displaced are named beside them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from queuecore.groups.state import GroupState, Wants
from queuecore.topics import ProviderPartition


def to_json(state: GroupState) -> str:
    members = [
        {
            "id": member,
            "member_id": state.member_ids.get(member),
            "strategy": wants.strategy,
            "topics": sorted(wants.topics),
            "partitions": _by_topic(wants.partitions),
            "targets": _by_topic(_of(member, state.targets)),
            "owns": _by_topic(_of(member, state.owners)),
        }
        for member, wants in state.members.items()
    ]
    whole = {
        "generation": state.generation,
        "version": state.version,
        "counts": state.counts,
        "members": members,
        "displaced": sorted(state.displaced),
    }
    return json.dumps(whole, separators=(",", ":"))


def from_json(text: str) -> GroupState:
    """The state that `to_json` gave this text for."""
    whole: dict[str, Any] = json.loads(text)
    state = GroupState()
    state.generation = whole["generation"]
    state.version = whole["version"]
    state.counts = whole["counts"]
    state.displaced = set(whole.get("displaced", []))
    for one in whole["members"]:
        member = one["id"]
        state.members[member] = Wants(
            frozenset(_partitions(one["partitions"])), frozenset(one["topics"]), one["strategy"]
        )
        if (member_id := one.get("member_id")) is not None:
            state.member_ids[member] = member_id
        state.targets.update(dict.fromkeys(_partitions(one["targets"]), member))
        state.owners.update(dict.fromkeys(_partitions(one["owns"]), member))
    return state


def _of(member: str, holders: Mapping[ProviderPartition, str]) -> Iterable[ProviderPartition]:
    return (partition for partition, holder in holders.items() if holder == member)


def _by_topic(partitions: Iterable[ProviderPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for partition in sorted(partitions):
        numbers[partition.topic].append(partition.partition)
    return numbers


def _partitions(numbers: Mapping[str, list[int]]) -> Iterable[ProviderPartition]:
    return (ProviderPartition(topic, number) for topic, listed in numbers.items() for number in listed)
