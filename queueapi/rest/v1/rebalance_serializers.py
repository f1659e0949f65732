"""Rebalances on the wire: what they are, and how they are asked for."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.actions.rebalances import LONGEST_REASON
from queueapi.cluster.models import Rebalance
from queueapi.models import Queue
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.v1.cluster_serializers import BalanceSerializer, MoveSerializer
from queueapi.rest.v1.paths import queue_lookup
from queueapi.selectors.rebalances import operation_of
from queuecore.cluster.resizing import MAX_PARTITIONS
from queuecore.cluster.services import ALL_SERVICE_TYPES, ServiceInfo
from queuecore.errors import ConfigurationError, InvalidName
from queuecore.topics import ServiceType

_MANY = 1000


class RebalanceSerializer(serializers.ModelSerializer[Rebalance]):
    """`done` of `total` partitions are where they should be; `pause_ms` is for how long those that moved were consumed
    by nobody, the middle one and the longest."""

    unwanted = serializers.BooleanField(source="is_unwanted", help_text="Somebody asked for its end.")

    class Meta:
        model = Rebalance
        fields = [
            "id", "state", "cause", "reason", "requested_by", "created_at", "started_at", "finished_at", "tries",
            "moves", "placements", "total", "done", "unwanted", "error", "pause_ms", "longest_pause_ms",
        ]  # fmt: skip


class BalancesSerializer(serializers.Serializer[Any]):
    before = BalanceSerializer()
    after = BalanceSerializer()


class OneRebalanceSerializer(RebalanceSerializer):
    """Of very many moves the first are listed."""

    listed_moves = MoveSerializer(source="moves_listed", many=True)
    balance = serializers.SerializerMethodField(help_text="Null before it is planned.")
    operation = serializers.SerializerMethodField(help_text="What follows it; null where nobody asked for it.")

    class Meta(RebalanceSerializer.Meta):
        fields = [*RebalanceSerializer.Meta.fields, "operation", "balance", "listed_moves"]

    @extend_schema_field(BalancesSerializer(allow_null=True))
    def get_balance(self, rebalance: Rebalance) -> Any:
        return rebalance.balance or None

    def get_operation(self, rebalance: Rebalance) -> UUID | None:
        operation = operation_of(rebalance.id)
        return None if operation is None else operation.id


class JoiningSerializer(StrictSerializer):
    """A service that is not there yet."""

    id = serializers.CharField(max_length=100)
    service_types = serializers.ListField(
        child=serializers.ChoiceField([kind.value for kind in ServiceType]), required=False, help_text="Left out: all."
    )
    weight = serializers.FloatField(default=1.0)
    labels = serializers.ListField(child=serializers.CharField(), default=list)
    dedicated_to = serializers.ListField(child=serializers.CharField(), default=list)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kinds = tuple(ServiceType(kind) for kind in attrs.get("service_types", ALL_SERVICE_TYPES))
        labels, dedications = frozenset(attrs["labels"]), frozenset(attrs["dedicated_to"])
        try:
            attrs["info"] = ServiceInfo(attrs["id"], kinds, attrs["weight"], labels, dedications)
        except (ConfigurationError, InvalidName) as error:
            raise serializers.ValidationError(error.message) from error
        return attrs


class RebalanceRequestSerializer(StrictSerializer):
    """Services that leave are to have nothing from then on. What joins, and other numbers of partitions, can only be
    planned for."""

    reason = serializers.CharField(
        default="", allow_blank=True, max_length=LONGEST_REASON, help_text="Needed, but for a plan."
    )
    leaving = serializers.ListField(
        child=serializers.CharField(), default=list, max_length=_MANY, help_text="Service ids."
    )
    joining = serializers.ListField(child=JoiningSerializer(), default=list, max_length=_MANY)
    partitions = serializers.DictField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_PARTITIONS),
        default=dict,
        help_text="How many a queue would have, by its id, or its name where it is the system's.",
    )

    def validate_joining(self, given: list[dict[str, Any]]) -> list[ServiceInfo]:
        return [one["info"] for one in given]

    def validate_partitions(self, given: dict[str, int]) -> dict[Queue, int]:
        return {_queue(named): count for named, count in given.items()}


def _queue(named: str) -> Queue:
    queue = None if "\0" in named else Queue.objects.filter(queue_lookup(named)).first()
    if queue is None:
        raise serializers.ValidationError(f"there is no queue {named!r}; use its id, or the name of a system queue")
    return queue
