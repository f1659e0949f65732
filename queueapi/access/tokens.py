"""Whose token this is. For some seconds a process remembers what it has found, so that not every call asks the
database; a token that was revoked, or whose maker may less now, is let in for no longer than that."""

from typing import Final

from django.utils import timezone

from queueapi.access.secrets import digest_of, is_same, prefix_of
from queueapi.actions.token_use import note_token_use
from queueapi.models import ApiToken
from queuecore.clock import SYSTEM_CLOCK, Clock

REMEMBERED_S: Final = 5.0
# More are forgotten all at once, which costs each of them one question.
_MOST: Final = 10_000


class TokenFinder:
    """Safe from any thread: who comes at the same time as another asks once more at worst."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._found: dict[str, tuple[float, ApiToken]] = {}

    def find(self, text: str) -> ApiToken | None:
        """The token, with who made it; None for one that is unknown, revoked or expired, or whose maker was
        deactivated."""
        prefix = prefix_of(text)
        if prefix is None:
            return None
        digest = digest_of(text)
        until, token = self._found.get(digest, (0.0, None))
        if token is None or self._clock.monotonic() >= until:
            token = _stored(prefix, digest)
            if token is not None:
                self._remember(digest, token)
        return token if token is not None and token.is_valid_at(timezone.now()) else None

    def forget(self) -> None:
        """Ask anew for each."""
        self._found.clear()

    def _remember(self, digest: str, token: ApiToken) -> None:
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[digest] = (self._clock.monotonic() + REMEMBERED_S, token)


def _stored(prefix: str, digest: str) -> ApiToken | None:
    token = ApiToken.objects.select_related("created_by__account").filter(prefix=prefix).first()
    # Compared whatever was found: that takes as long for a prefix that nobody has.
    is_right = is_same(digest, token.digest if token else digest_of(""))
    if token is None or not is_right or not token.created_by.is_active or not token.is_valid_at(timezone.now()):
        return None
    note_token_use(token)
    return token


TOKENS: Final = TokenFinder()
