"""Topics of instances that are gone for good: nobody will ever read them again."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from queuecore.cluster.notifications.names import DEFAULT_SETTINGS, personal_families
from queuecore.config.queue_tree import QueueSettings
from queuecore.providers.base import QueueAdmin

logger = logging.getLogger(__name__)

# An instance that comes back after less finds what it was told meanwhile.
DEFAULT_LIMIT_S: Final = 24 * 60 * 60.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a look at the topics gave.

    removed     the topics that were removed
    gone_since  who else has topics and is not there, and since when: for the next look
    """

    removed: frozenset[str]
    gone_since: Mapping[str, float]


def remove_abandoned_topics(
    admin: QueueAdmin,
    alive: Collection[str],
    gone_since: Mapping[str, float],
    now: float,
    settings: QueueSettings = DEFAULT_SETTINGS,
    *,
    limit_s: float = DEFAULT_LIMIT_S,
) -> Sweep:
    """Remove the notification and response topics of instances that have been gone for longer than `limit_s`. For one
    instance at a time: the one that coordinates.

    alive       the ids of those that are there; their topics stay
    gone_since  when the others were last seen, or when a look first found that they are not there. That is what the
                last look gave, and over it what the caller knows better. Of whom nobody ever heard is gone since `now`
    now         in seconds, of the clock that `gone_since` is of

    What somebody still reads stays as well, whoever is alive: an instance may have lost sight of the cluster alone.
    Edges' topics are no instance's. An instance that joins must be known to the cluster first: else topics that an
    earlier life of it left may be removed under its feet. Raises what the provider does.
    """
    owners = {topic: one for topic, one in _personal_topics(admin, settings).items() if one not in alive}
    since = {one: min(now, gone_since.get(one, now)) for one in owners.values()}
    expired = frozenset(topic for topic, one in owners.items() if now - since[one] > limit_s)
    removed = expired - _read_by_somebody(admin) if expired else expired
    if removed:
        admin.delete_topics(removed)
        logger.info(
            "services are gone for more than %g s; removed their topics %s", limit_s, ", ".join(sorted(removed))
        )
    left = {one for topic, one in owners.items() if topic not in removed}
    return Sweep(removed, {one: since[one] for one in left})


def _personal_topics(admin: QueueAdmin, settings: QueueSettings) -> dict[str, str]:
    """The topics that are one instance's alone, with its id."""
    families = personal_families(settings)
    return {
        topic: topic.removeprefix(family)
        for topic in admin.topics()
        for family in families
        if topic.startswith(family) and topic != family
    }


def _read_by_somebody(admin: QueueAdmin) -> frozenset[str]:
    members = (places for group in admin.groups().values() for places in group.members.values())
    return frozenset(place.topic for places in members for place in places)
