"""Lag on the wire: of partitions, of queues, of all of them, and how it was."""

from typing import Any

from rest_framework import serializers

from queueapi.choices import LagStatus
from queueapi.models import LagCurrent, LagMinute
from queueapi.rest.v1.histories import HistorySerializer


class LagSerializer(serializers.ModelSerializer[LagCurrent]):
    """How far behind a queue's consumer is on one partition. Null is what samples do not tell."""

    queue_name = serializers.CharField(read_only=True)
    tenant = serializers.UUIDField(read_only=True, help_text="Whose queue it is.")

    class Meta:
        model = LagCurrent
        fields = [
            "id", "queue", "queue_name", "tenant", "partition", "topic", "consumer_group", "end_offset",
            "committed_offset", "lag_messages", "lag_seconds", "produced_per_s", "consumed_per_s", "trend_per_s",
            "drain_eta_s", "oldest_age_s", "status", "reason", "status_since", "as_of",
        ]  # fmt: skip
        extra_kwargs = {
            "lag_seconds": {"help_text": "How long ago what the group is at was stored."},
            "trend_per_s": {"help_text": "By how many messages the lag grows each second; below 0 it shrinks."},
            "drain_eta_s": {"help_text": "When it will have caught up, if nothing changes; null: never, as it seems."},
            "oldest_age_s": {"help_text": "How old the oldest message is that waits."},
            "reason": {"help_text": "Why the status is what it is, in one sentence."},
            "status_since": {"help_text": "When it became so."},
        }


class LagFiguresSerializer(serializers.Serializer[Any]):
    """Of several partitions together: messages and rates are added up, times are those of the one where they are
    longest."""

    partitions = serializers.IntegerField(help_text="How many there are figures of.")
    statuses = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many partitions are of each status."
    )
    lag_messages = serializers.IntegerField(allow_null=True)
    lag_seconds = serializers.FloatField(allow_null=True)
    oldest_age_s = serializers.FloatField(allow_null=True)
    produced_per_s = serializers.FloatField(allow_null=True)
    consumed_per_s = serializers.FloatField(allow_null=True)
    trend_per_s = serializers.FloatField(allow_null=True)
    drain_eta_s = serializers.FloatField(
        allow_null=True, help_text="When all will have caught up; null where one of them never would."
    )
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="The time of a queue's oldest figure, of all queues' newest."
    )


class LagTotalsSerializer(LagFiguresSerializer):
    unsampled = serializers.IntegerField(
        help_text="How many partitions are left out: of them no samples come any more, while there are of others."
    )


class QueueLagSerializer(LagFiguresSerializer):
    """A queue is as its worst partition is. Null is what nobody knows yet."""

    queue = serializers.UUIDField(source="queue.pk")
    queue_name = serializers.CharField(source="queue.name")
    tenant = serializers.UUIDField(source="queue.tenant_id", help_text="Whose queue it is.")
    status = serializers.ChoiceField(source="worst.status", choices=LagStatus.choices, allow_null=True)
    reason = serializers.CharField(source="worst.reason", allow_null=True, help_text="Why, in one sentence.")
    status_since = serializers.DateTimeField(source="worst.status_since", allow_null=True)
    worst_partition = serializers.IntegerField(source="worst.partition", allow_null=True)


class LagPointSerializer(serializers.ModelSerializer[LagMinute]):
    class Meta:
        model = LagMinute
        fields = ["at", "lag_messages", "lag_seconds", "produced", "consumed", "status", "samples"]
        extra_kwargs = {
            "at": {"help_text": "When the stretch began."},
            "lag_messages": {"help_text": "The most there were in it, all partitions together."},
            "lag_seconds": {"help_text": "The most there were in it."},
            "produced": {"help_text": "Messages in it."},
            "consumed": {"help_text": "Messages in it."},
            "status": {"help_text": "The worst there was in it."},
            "samples": {"help_text": "Of how many samples of partitions it is made."},
        }


class LagHistorySerializer(HistorySerializer):
    points = LagPointSerializer(many=True)
