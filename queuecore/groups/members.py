"""Members that are known again, by an id that their user gave them."""

import re

from queuecore.errors import Displaced, InvalidName

# Kafka's rule, kept everywhere so that an id means the same on every provider.
_ALLOWED = re.compile(r"[A-Za-z0-9._-]{1,249}")


def check_member_id(member_id: str | None) -> str | None:
    """`member_id`, or InvalidName where Kafka would not take it."""
    if member_id is not None and (not _ALLOWED.fullmatch(member_id) or member_id in {".", ".."}):
        raise InvalidName(
            f"member id {member_id!r} may hold only ASCII letters, digits, '.', '_' and '-', at most 249 of them"
        )
    return member_id


def displaced(group: str, member_id: str | None) -> Displaced:
    """For a consumer whose place another one has taken."""
    return Displaced(
        f"another consumer has joined group {group} as {member_id!r} and has taken this one's place; if both shall "
        "read, give each a member id of its own",
        group=group,
        member_id=member_id,
    )
