"""What lists of the cluster can be narrowed to."""

from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django_filters import rest_framework as filters

from queueapi.choices import RebalanceState
from queueapi.cluster.models import Partition, Rebalance, ServiceInstance
from queueapi.rest.filters import TrueOrFalseFilter
from queueapi.selectors.rebalances import UNSETTLED
from queueapi.selectors.services import living
from queuecore.cluster.rebalances import Cause
from queuecore.topics import ServiceType


class ServiceFilter(filters.FilterSet):
    alive = TrueOrFalseFilter(method="by_life", label="Whether its lease lasts.")
    service_type = filters.ChoiceFilter(choices=[(kind.value, kind.value) for kind in ServiceType], method="by_type")

    class Meta:
        model = ServiceInstance
        fields: list[str] = []

    def by_life(self, rows: QuerySet[Any], _name: str, value: bool) -> QuerySet[Any]:
        those = living().values("pk")
        return rows.filter(pk__in=those) if value else rows.exclude(pk__in=those)

    def by_type(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """As text: not every database can ask what a JSON list has."""
        with_text: QuerySet[Any] = rows.annotate(types=Cast("service_types", TextField()))
        return with_text.filter(types__contains=f'"{value}"')


class PartitionFilter(filters.FilterSet):
    queue = filters.CharFilter(lookup_expr="iexact", label="Its queue's name.")
    settled = TrueOrFalseFilter(method="by_settled", label="Whether it is where it should be.")

    class Meta:
        model = Partition
        fields = ["queue", "owner", "target", "settled", "tenant"]

    def by_settled(self, rows: QuerySet[Any], _name: str, value: bool) -> QuerySet[Any]:
        return rows.exclude(UNSETTLED) if value else rows.filter(UNSETTLED)


class RebalanceFilter(filters.FilterSet):
    state = filters.ChoiceFilter(choices=RebalanceState)
    cause = filters.ChoiceFilter(choices=[(cause.value, cause.value) for cause in Cause])

    class Meta:
        model = Rebalance
        fields: list[str] = []
