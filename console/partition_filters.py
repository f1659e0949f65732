"""What the list of a queue's partitions can be narrowed to."""

from typing import Any, Final
from uuid import UUID

import django_filters
from django import forms
from django.db.models import QuerySet

from console.cluster_filters import owner_choices, owner_named
from console.filters import ListFilter
from queueapi.choices import LagStatus
from queueapi.models import LagCurrent, Queue
from queueapi.selectors.queue_partitions import numbers_owned
from queuecore.topics import MAX_PARTITIONS

_NUMBER: Final = forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "placeholder": "Any"})


class NumberFilter(django_filters.Filter):
    field_class = forms.IntegerField


class QueuePartitionFilter(ListFilter):
    """Of the queue that the address names."""

    number = NumberFilter("partition", label="Partition", min_value=0, max_value=MAX_PARTITIONS - 1, widget=_NUMBER)
    status = django_filters.ChoiceFilter(choices=LagStatus, empty_label="Any status")
    owner = django_filters.ChoiceFilter(
        label="Owner", choices=owner_choices, method="by_owner", empty_label="Any owner"
    )

    class Meta:
        model = LagCurrent
        fields: list[str] = []

    def by_owner(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """Rows of two databases: there is nothing to join."""
        queue: UUID = self.request.resolver_match.kwargs["pk"]
        return rows.filter(partition__in=numbers_owned(Queue.objects.get(pk=queue), owner_named(value)))


class OwnPartitionFilter(QueuePartitionFilter):
    """Which services there are is no business of a tenant's people."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.filters["owner"]
