"""Topics on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from queueapi.selectors.topics import TopicFilter, TopicKind
from queuecore.providers.base import FOR_EVER

TOPIC_KINDS = [(kind.value, kind.value) for kind in TopicKind]


class TopicQuerySerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=TOPIC_KINDS, required=False, help_text="What it holds.")
    queue = serializers.CharField(required=False, help_text="Its queue's id, or name in any case.")
    tenant = serializers.UUIDField(required=False, help_text="The id of the tenant whose queue it is of.")
    text = serializers.CharField(required=False, help_text="Part of its name, in any case.")

    def filter(self) -> TopicFilter:
        asked = dict(self.validated_data)
        kind = asked.pop("kind", None)
        return TopicFilter(None if kind is None else TopicKind(kind), **asked)


class TopicQueueSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()


class TopicSerializer(serializers.Serializer[Any]):
    """What is `null` nobody could tell: a partition without a leader, or a provider that does not measure."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(source="owner.kind", choices=TOPIC_KINDS)
    queues = TopicQueueSerializer(source="owner.queues", many=True, help_text="Several may share one for dead letters.")
    tenant = serializers.UUIDField(source="owner.tenant_id", allow_null=True)
    partitions = serializers.IntegerField(source="spec.partitions")
    retention_ms = serializers.IntegerField(source="spec.retention_ms", help_text=f"{FOR_EVER}: for ever.")
    retention_bytes = serializers.IntegerField(source="spec.retention_bytes", help_text=f"{FOR_EVER}: without limit.")
    cleanup_policy = serializers.CharField(source="spec.cleanup", help_text="`delete`, `compact` or `compact,delete`.")
    size_bytes = serializers.IntegerField(allow_null=True)
    beginning = serializers.IntegerField(allow_null=True, help_text="The oldest offsets, of all partitions together.")
    end = serializers.IntegerField(allow_null=True, help_text="The offsets that come next, of all partitions together.")
    messages = serializers.IntegerField(
        allow_null=True, help_text="Offsets from the beginning to the end; compaction may have emptied some."
    )


class TopicPartitionSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField(source="place.partition")
    beginning = serializers.IntegerField(allow_null=True, help_text="The oldest offset there is.")
    end = serializers.IntegerField(allow_null=True, help_text="The offset that the next message gets.")
    size_bytes = serializers.IntegerField(allow_null=True)
    leader = serializers.IntegerField(allow_null=True, help_text="The broker that leads it, where there are brokers.")
    replicas = serializers.ListField(child=serializers.IntegerField())
    in_sync = serializers.ListField(child=serializers.IntegerField())


class OneTopicSerializer(TopicSerializer):
    segment_bytes = serializers.IntegerField(source="spec.segment_bytes")
    replication_factor = serializers.IntegerField(source="spec.replication_factor", allow_null=True)
    partition_list = TopicPartitionSerializer(source="description.partitions", many=True)


@extend_schema_serializer(many=False)
class TopicPageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True, help_text="The next page.")
    results = TopicSerializer(many=True)
