"""Consumer groups as pure logic: who reads which partition. Without a clock, a lock or storage of its own.

A provider that has no brokers to do this for it keeps one `GroupState` per group, behind a lock or as one row of its
database (`to_json`, `from_json`), and the consumers of the group work on it in turn. `state` tells how.

How far groups are, and how that is changed by hand, is in `lag` and `resetting`: those ask the provider.
"""

from queuecore.groups.assignment import assign
from queuecore.groups.state import GroupState, Sync, Wants
from queuecore.groups.stored import from_json, to_json

__all__ = ["GroupState", "Sync", "Wants", "assign", "from_json", "to_json"]
