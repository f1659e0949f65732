"""What lists of the cluster can be narrowed to."""

from typing import Any, Final

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from console.filters import ListFilter, QueueNameFilter, TenantNameFilter, search_box
from queueapi.choices import RebalanceState
from queueapi.cluster.models import Partition, Rebalance, ServiceInstance
from queueapi.models import Queue, Tenant
from queueapi.selectors.rebalances import UNSETTLED
from queueapi.selectors.services import living, services
from queuecore.cluster.rebalances import Cause

# No service instance is called that.
NOBODY: Final = "-"
_STATES = [("alive", "Alive"), ("draining", "Draining"), ("lost", "Lost or expired")]
_CAUSES = [(Cause.MEMBERSHIP, "Services"), (Cause.PARTITIONS, "Partitions"), (Cause.REQUEST, "Asked for")]


class ServiceFilter(ListFilter):
    q = search_box("Search", "search", "Id or host")
    life = django_filters.ChoiceFilter(label="State", choices=_STATES, method="by_life", empty_label="Any state")

    class Meta:
        model = ServiceInstance
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(service_id__icontains=value) | Q(host__icontains=value))

    def by_life(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        if value == "draining":
            return rows.filter(is_draining=True)
        those = living().values("pk")
        return rows.filter(pk__in=those) if value == "alive" else rows.exclude(pk__in=those)


def owner_choices() -> list[tuple[str, str]]:
    """Whoever may have any. Asked anew for each page."""
    known = services().order_by("service_id").values_list("service_id", flat=True)
    return [(NOBODY, "Nobody"), *((name, name) for name in known)]


def owner_named(choice: str) -> str | None:
    """None: nobody."""
    return None if choice == NOBODY else choice


class PartitionFilter(ListFilter):
    q = search_box("Search", "search", "Name")
    queue = QueueNameFilter(method="by_queue")
    tenant = TenantNameFilter(method="by_tenant")
    owner = django_filters.ChoiceFilter(choices=owner_choices, method="by_owner", empty_label="Any owner")
    unsettled = django_filters.BooleanFilter(
        label="Show", method="by_unsettled", widget=forms.Select(choices=[("", "All"), ("true", "Unsettled only")])
    )

    class Meta:
        model = Partition
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(name__icontains=value)

    def by_queue(self, rows: QuerySet[Any], _name: str, value: Queue) -> QuerySet[Any]:
        """Rows of two databases: there is nothing to join."""
        return rows.filter(tenant=value.tenant_id, queue=value.name)

    def by_tenant(self, rows: QuerySet[Any], _name: str, value: Tenant) -> QuerySet[Any]:
        return rows.filter(tenant=value.pk)

    def by_owner(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(owner=owner_named(value))

    def by_unsettled(self, rows: QuerySet[Any], _name: str, value: bool) -> QuerySet[Any]:
        return rows.filter(UNSETTLED) if value else rows


class RebalanceFilter(ListFilter):
    q = search_box("Search", "search", "Reason or who asked for it")
    cause = django_filters.ChoiceFilter(choices=_CAUSES, empty_label="Any cause")
    state = django_filters.ChoiceFilter(choices=RebalanceState, widget=forms.HiddenInput)

    class Meta:
        model = Rebalance
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(Q(reason__icontains=value) | Q(requested_by__icontains=value))
