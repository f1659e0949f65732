"""What became of a queue's messages, and how evenly they are spread, on the wire."""

from typing import Any

from rest_framework import serializers

from queueapi.models import PartitionHeat, ProcessingMinute
from queueapi.rest.v1.histories import HistorySerializer


class ProcessingPointSerializer(serializers.ModelSerializer[ProcessingMinute]):
    class Meta:
        model = ProcessingMinute
        fields = [
            "at", "polled", "polled_bytes", "handled", "failed", "timed_out", "retried", "dead_lettered", "dropped",
            "p50_ms", "p95_ms", "p99_ms",
        ]  # fmt: skip
        extra_kwargs = {
            "at": {"help_text": "When the stretch began."},
            "handled": {"help_text": "Messages that were done with."},
            "failed": {"help_text": "Attempts; each may have been tried again."},
            "timed_out": {"help_text": "Attempts that took too long."},
            "p50_ms": {"help_text": "Half of the attempts took no longer; null where there were none."},
        }


class ProcessingHistorySerializer(HistorySerializer):
    points = ProcessingPointSerializer(many=True)


class TenantShareSerializer(serializers.Serializer[Any]):
    tenant = serializers.CharField(
        source="tenant_id", help_text="Its id; empty for messages that name none, `other` for the rest."
    )
    messages = serializers.IntegerField()


class EntityShareSerializer(TenantShareSerializer):
    key = serializers.CharField()
    is_uuid = serializers.BooleanField(help_text="Whether the key is an id, and not just bytes.")


class PartitionHeatSerializer(serializers.ModelSerializer[PartitionHeat]):
    entities = EntityShareSerializer(many=True)
    tenants = TenantShareSerializer(many=True)

    class Meta:
        model = PartitionHeat
        fields = ["partition", "messages", "share", "is_hot", "entities", "tenants", "as_of"]
        extra_kwargs = {"share": {"help_text": "Of all of the queue's messages, 0 to 1."}}


class WhatIfSpreadSerializer(serializers.Serializer[Any]):
    partitions = serializers.IntegerField()
    hash_function = serializers.CharField()
    skew = serializers.FloatField(
        help_text="Of the entities that were seen. Divided by `partitions`: the fullest one's share of their messages."
    )
    moved = serializers.FloatField(help_text="What part of the messages would go elsewhere, 0 to 1.")


class QueueHeatSerializer(serializers.Serializer[Any]):
    """Null is what nobody has counted yet."""

    skew = serializers.FloatField(
        source="skew.skew",
        allow_null=True,
        help_text="The fullest partition's messages, of what each would have if all had the same: 1 is even.",
    )
    entities_seen = serializers.IntegerField(source="skew.entities_seen", allow_null=True)
    what_if = WhatIfSpreadSerializer(source="skew.what_if", many=True, default=[])
    as_of = serializers.DateTimeField(source="skew.as_of", allow_null=True)
    partition_count = serializers.IntegerField(help_text="How many partitions there are figures of.")
    partitions = PartitionHeatSerializer(many=True, help_text="Those with most messages, most first.")
