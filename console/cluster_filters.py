"""What lists of the cluster can be narrowed to."""

from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from console.filters import ListFilter, search_box
from queueapi.choices import RebalanceState
from queueapi.cluster.models import Partition, Rebalance, ServiceInstance
from queueapi.selectors.rebalances import UNSETTLED
from queueapi.selectors.services import living, services
from queuecore.cluster.rebalances import Cause

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


def _owners() -> list[tuple[str, str]]:
    """Whoever may have any. Asked anew for each page."""
    return [(name, name) for name in services().order_by("service_id").values_list("service_id", flat=True)]


class PartitionFilter(ListFilter):
    q = search_box("Search", "search", "Name")
    queue = django_filters.CharFilter(
        widget=forms.TextInput(attrs={"placeholder": "Its whole name", "autocomplete": "off", "spellcheck": "false"})
    )
    owner = django_filters.ChoiceFilter(choices=_owners, empty_label="Any owner")
    unsettled = django_filters.BooleanFilter(
        label="Show", method="by_unsettled", widget=forms.Select(choices=[("", "All"), ("true", "Unsettled only")])
    )

    class Meta:
        model = Partition
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(name__icontains=value)

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
