"""Secrets that somebody has typed into a form, while it is shown to them again: with its plan, or refused."""

import secrets
from collections.abc import MutableMapping
from typing import Any, Final

_WHERE: Final = "typed_secrets"
# Of forms that nobody finished the oldest go first.
_MOST_KEPT: Final = 5


class TypedSecrets:
    """Kept in the session of who typed them, and nowhere on the page: that has a name, which says nothing to others,
    and nothing any more to themselves once they have signed in anew."""

    def __init__(self, session: MutableMapping[str, Any]) -> None:
        self._session = session

    def keep(self, secret: str) -> str:
        """The name by which it is found again."""
        kept: dict[str, str] = self._session.get(_WHERE, {})
        name = next((known for known, value in kept.items() if value == secret), secrets.token_urlsafe(12))
        others = [(known, value) for known, value in kept.items() if known != name]
        # Assigned: of what changes within a value the session takes no notice.
        self._session[_WHERE] = dict([*others, (name, secret)][-_MOST_KEPT:])
        return name

    def find(self, name: str) -> str | None:
        kept: dict[str, str] = self._session.get(_WHERE, {})
        return kept.get(name)

    def forget(self, name: str) -> None:
        """When what it was typed for is done."""
        kept: dict[str, str] = self._session.get(_WHERE, {})
        if name in kept:
            self._session[_WHERE] = {known: value for known, value in kept.items() if known != name}
