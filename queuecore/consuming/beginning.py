"""Where a new group begins that wants only what comes from now on."""

from collections.abc import Collection
from contextlib import suppress

from queuecore.errors import GroupActive
from queuecore.providers.base import QueueAdmin
from queuecore.topics import ProviderPartition


def begin_at_end(admin: QueueAdmin, group: str, places: Collection[ProviderPartition]) -> None:
    """Commit the ends of what the group has never committed. Otherwise it would begin anew, and miss messages, each
    time that its members leave before the first commit; and nobody could say how far it is."""
    committed = admin.committed_offsets({group: places})[group]
    if unknown := [place for place in places if place not in committed]:
        # Where somebody reads already, that one has begun.
        with suppress(GroupActive):
            admin.alter_group_offsets(group, admin.end_offsets(unknown))
