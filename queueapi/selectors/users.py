"""Users as lists show them."""

from django.contrib.auth.models import User
from django.db.models import OuterRef, Q, QuerySet
from django.utils import timezone

from queueapi.models import ApiToken
from queueapi.selectors.counting import number_of


def users_for_lists() -> QuerySet[User]:
    """Each with role and tenant, and with how many of their tokens are valid."""
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    tokens = ApiToken.objects.filter(unexpired, revoked_at__isnull=True, created_by=OuterRef("pk"))
    return User.objects.select_related("account__tenant").annotate(token_count=number_of(tokens, "created_by"))
