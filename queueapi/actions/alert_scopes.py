"""What rules and silences may be for."""

from queueapi.errors import InvalidInput
from queueapi.models import Tenant
from queuecore.topics import SYSTEM_TENANT


def check_tenant(tenant: Tenant | None) -> None:
    """InvalidInput for the system's: alerts of what all share are of no tenant, so nothing would match."""
    if tenant is not None and tenant.id == SYSTEM_TENANT:
        raise InvalidInput("tenant: the system's queues are all tenants'; leave it out, or name a queue")
