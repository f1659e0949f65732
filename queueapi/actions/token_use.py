"""When tokens were used last."""

from datetime import timedelta
from typing import Final

from django.db.models import Q
from django.utils import timezone

from queueapi.models import ApiToken

NOTED_EVERY: Final = timedelta(minutes=1)


def note_token_use(token: ApiToken) -> None:
    """Once a minute at most, whichever process is asked. It is no change that anybody made: nothing is audited."""
    now = timezone.now()
    long_ago = now - NOTED_EVERY
    if token.last_used_at is None or token.last_used_at < long_ago:
        unnoted = Q(last_used_at__isnull=True) | Q(last_used_at__lt=long_ago)
        ApiToken.objects.filter(unnoted, pk=token.pk).update(last_used_at=now)
