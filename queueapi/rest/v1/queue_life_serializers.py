"""Draining and deleting queues on the wire: what is asked for, and the plan."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.models import Queue
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer
from queueapi.rest.v1.paths import queue_lookup


@extend_schema_field(str)
class QueueField(serializers.Field[Queue, str, str, Any]):
    """A queue by its id, or by the name of a system queue whatever its case."""

    def to_internal_value(self, data: object) -> Queue:
        named = data if isinstance(data, str) and "\0" not in data else ""
        found = Queue.objects.filter(queue_lookup(named)).first()
        if found is None:
            raise serializers.ValidationError(f"there is no queue {data!r}; give an id, or the name of a system queue")
        return found

    def to_representation(self, value: Queue) -> str:
        return str(value.pk)


class DrainSerializer(StrictSerializer):
    to = QueueField(
        required=False,
        allow_null=True,
        help_text="Where messages go that are published to it meanwhile. Left out: they are refused.",
    )


class DeletionSerializer(StrictSerializer):
    move_to = QueueField(
        required=False,
        allow_null=True,
        help_text="Where messages go that it has left. Left out: they are consumed first.",
    )
    discard_letters = serializers.BooleanField(
        required=False, default=False, help_text="Whether dead letters that nobody has decided on are discarded."
    )


class QueuePlanSerializer(ChangePlanSerializer):
    """`why_not` is empty where nothing stands in the way."""

    queue = serializers.UUIDField(source="queue.pk")
    messages = serializers.IntegerField(allow_null=True, help_text="Still to be consumed; null where that is unknown.")
    consumers = serializers.IntegerField(help_text="Who consume it now.")
    forwarders = serializers.ListField(child=serializers.CharField(), help_text="Queues whose handlers send to it.")
    letters = serializers.IntegerField(help_text="Its dead letters that nobody has decided on.")
    topics = serializers.ListField(child=serializers.CharField(), help_text="What would be removed at the provider.")
    groups = serializers.ListField(child=serializers.CharField(), help_text="Whose offsets would be removed.")
    why_not = serializers.ListField(child=serializers.CharField())
