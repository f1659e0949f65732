"""Which API tokens somebody may know of."""

from django.db.models import QuerySet

from queueapi.access.principals import Principal
from queueapi.access.table import READ, Resource
from queueapi.access.tenancy import visible
from queueapi.models import ApiToken


def tokens_seen_by(principal: Principal, tokens: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
    """Of these their own; their tenant's, where they are a tenant's; everyone's for those who see users."""
    seen = visible(principal, tokens)
    sees_others = principal.tenant_id is not None or principal.may(READ, Resource.USERS)
    return seen if sees_others else seen.filter(created_by=principal.user_id)
