"""Service instances and partitions on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.change_plans import Change
from queueapi.cluster.models import Partition, ServiceInstance
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer, ChangeSerializer
from queuecore.cluster.what_if import WhatIf


class ServiceSerializer(serializers.ModelSerializer[ServiceInstance]):
    alive = serializers.BooleanField(source="is_alive")
    draining = serializers.BooleanField(source="is_draining", help_text="It is to have nothing, as it will be stopped.")
    partitions = serializers.IntegerField(help_text="How many it consumes.")

    class Meta:
        model = ServiceInstance
        fields = [
            "service_id", "service_types", "weight", "labels", "dedicated_to", "host", "pid", "partitions", "draining",
            "alive", "started_at", "heartbeat_at", "lease_expires_at", "gone_at",
        ]  # fmt: skip


class OneServiceSerializer(ServiceSerializer):
    partition_names = serializers.SerializerMethodField(help_text="What it consumes, by name.")

    class Meta(ServiceSerializer.Meta):
        fields = [*ServiceSerializer.Meta.fields, "partition_names"]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_partition_names(self, service: ServiceInstance) -> list[str]:
        return list(Partition.objects.filter(owner=service.service_id).values_list("name", flat=True))


class PartitionSerializer(serializers.ModelSerializer[Partition]):
    """`owner` consumes it, since `taken_at` and under `epoch`; `target` should. Nobody does since `idle_since`."""

    settled = serializers.SerializerMethodField(help_text="Whether it is where it should be.")

    class Meta:
        model = Partition
        fields = [
            "name", "queue", "number", "tenant", "service_type", "label", "owner", "epoch", "target", "settled",
            "taken_at", "idle_since",
        ]  # fmt: skip

    @extend_schema_field(bool)
    def get_settled(self, partition: Partition) -> bool:
        return partition.owner == partition.target


class PlaceSerializer(serializers.Serializer[Any]):
    """`owner` and `epoch` are null where nobody consumes the partition, or the cluster does not know it yet."""

    queue = serializers.CharField()
    tenant = serializers.UUIDField(help_text="Whose queue it is.")
    entity = serializers.CharField()
    topic = serializers.CharField(help_text="The queue's, without tenant and partition.")
    partition = serializers.IntegerField()
    full_topic_name = serializers.CharField(help_text="What the partition's topic is called at the provider.")
    hash_function = serializers.CharField()
    hash = serializers.IntegerField(help_text="Of the entity: its absolute value modulo partitions is the partition.")
    routing_version = serializers.IntegerField()
    owner = serializers.CharField(allow_null=True, help_text="The service that consumes it.")
    epoch = serializers.IntegerField(allow_null=True, help_text="Under which it does.")


class MoveSerializer(serializers.Serializer[Any]):
    partition = serializers.CharField()
    # Not what a field is read from, as in its base class: fields that are declared are kept elsewhere.
    source = serializers.CharField(help_text="Who has it; may be gone.")  # type: ignore[assignment]
    target = serializers.CharField()


class LoadSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="How many partitions it has.")
    share = serializers.FloatField(help_text="How many it should have by its weight.")


class BalanceSerializer(serializers.Serializer[Any]):
    services = serializers.DictField(child=LoadSerializer(), help_text="By service id.")
    largest_deviation = serializers.FloatField(help_text="How far the one furthest from its share is away from it.")


class WhatIfSerializer(ChangePlanSerializer):
    """What a rebalance would do. `changes` are its moves: by whom each partition is consumed."""

    summary = serializers.SerializerMethodField()  # type: ignore[assignment]
    changes = serializers.SerializerMethodField()  # type: ignore[assignment]

    moves = MoveSerializer(source="plan.moves", many=True)
    placements = serializers.IntegerField(help_text="How many partitions that nobody has would get an owner.")
    unassigned = serializers.DictField(
        source="plan.unassigned", child=serializers.CharField(), help_text="Partitions nobody may have, each with why."
    )
    before = BalanceSerializer(source="plan.before")
    after = BalanceSerializer(source="plan.after")
    pause_ms = serializers.IntegerField(help_text="For how long each partition that moves is consumed by nobody.")
    pause_is_assumed = serializers.BooleanField(
        source="is_assumed", help_text="No rebalance has shown yet how long that takes."
    )

    def get_summary(self, would_be: WhatIf) -> str:
        moves, placements = len(would_be.plan.moves), would_be.placements
        return f"{moves} partitions would move, and {placements} that nobody has would get an owner"

    @extend_schema_field(ChangeSerializer(many=True))
    def get_changes(self, would_be: WhatIf) -> Any:
        changes = [Change(f"partition {move.partition}", move.source, move.target) for move in would_be.plan.moves]
        return ChangeSerializer(changes, many=True).data
