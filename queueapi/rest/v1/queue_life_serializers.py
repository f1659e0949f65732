"""Resizing, draining and deleting queues on the wire: what is asked for, and the plan."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.access.tenancy import visible
from queueapi.models import Queue
from queueapi.models.queue import MOST_PARTITIONS
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer
from queueapi.rest.permissions import requester_of
from queueapi.rest.v1.paths import queue_of_path


@extend_schema_field(str)
class QueueField(serializers.Field[Queue, str, str, Any]):
    """A queue by its id, or by its name whatever its case, as the queue of the path is named. One that the request may
    not know of is as one that there is not."""

    def to_internal_value(self, data: object) -> Queue:
        named = data if isinstance(data, str) and "\0" not in data else ""
        request = self.context["request"]
        try:
            return queue_of_path(request, visible(requester_of(request), Queue.objects.all()), named)
        except Http404:
            hint = "give an id, or the name of a system queue, or add tenant= for the name of a tenant's"
            raise serializers.ValidationError(f"there is no queue {data!r}; {hint}") from None

    def to_representation(self, value: Queue) -> str:
        return str(value.pk)


class DrainSerializer(StrictSerializer):
    to = QueueField(
        required=False,
        allow_null=True,
        help_text="Where messages go that are published to it meanwhile. Left out: they are refused.",
    )


class ResizeSerializer(StrictSerializer):
    partitions = serializers.IntegerField(min_value=1, max_value=MOST_PARTITIONS, help_text="How many it is to have.")


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
    created = serializers.ListField(child=serializers.CharField(), help_text="Topics that would be made.")
    topics = serializers.ListField(child=serializers.CharField(), help_text="What would be removed at the provider.")
    groups = serializers.ListField(child=serializers.CharField(), help_text="Whose offsets would be removed.")
    why_not = serializers.ListField(child=serializers.CharField())
