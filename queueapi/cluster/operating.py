"""What people and automation do with the cluster's rows."""

from uuid import UUID

from django.utils import timezone

from queueapi.cluster.models import ServiceInstance
from queueapi.cluster.rebalance_rows import find_row, from_row, save_row
from queueapi.cluster.rows import changing, reaching
from queuecore.cluster.leases import unknown_rebalance
from queuecore.cluster.rebalances import Rebalance
from queuecore.cluster.services import unknown_service


class OperatorRows:
    """An OperatorStore."""

    def set_draining(self, service_id: str, *, draining: bool) -> None:
        with changing() as change:
            alive = ServiceInstance.objects.filter(gone_at__isnull=True)
            if not alive.filter(service_id=service_id).update(is_draining=draining):
                raise unknown_service(service_id, alive.values_list("service_id", flat=True))
            change.touch()

    def request_rebalance(self, reason: str, requested_by: str) -> Rebalance:
        with changing():
            now_ms = round(timezone.now().timestamp() * 1000)
            return from_row(save_row(Rebalance(reason, requested_by=requested_by, created_ms=now_ms)))

    def cancel_rebalance(self, rebalance_id: UUID) -> Rebalance:
        with changing():
            row = find_row(rebalance_id)
            if row is None:
                raise unknown_rebalance(rebalance_id)
            before = from_row(row)
            if not before.state.is_final:
                row.is_unwanted = True
                row.save(update_fields=["is_unwanted"])
            return before

    def find_rebalance(self, rebalance_id: UUID) -> Rebalance | None:
        with reaching():
            row = find_row(rebalance_id)
        return None if row is None else from_row(row)
