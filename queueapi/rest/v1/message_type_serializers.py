"""Message types on the wire."""

import base64
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.actions.message_types import MAX_TOPICS, Description
from queueapi.models import MessageType, MessageTypeTopic, MessageTypeVersion
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer
from queuecore.messagetypes import message_names


class MessageTypeSerializer(serializers.ModelSerializer[MessageType]):
    topics: "serializers.SlugRelatedField[MessageTypeTopic]" = serializers.SlugRelatedField(
        many=True, read_only=True, slug_field="topic"
    )

    class Meta:
        model = MessageType
        fields = ["name", "message", "version", "topics", "created_at", "updated_at"]


class MessageTypeVersionSerializer(serializers.ModelSerializer[MessageTypeVersion]):
    class Meta:
        model = MessageTypeVersion
        fields = ["version", "created_at", "created_by"]


class OneMessageTypeSerializer(MessageTypeSerializer):
    versions = MessageTypeVersionSerializer(many=True, read_only=True)
    files = serializers.SerializerMethodField(help_text="The sources of the newest version, where they were given.")
    descriptor_set = serializers.SerializerMethodField(help_text="Of the newest version, in base64.")
    messages = serializers.SerializerMethodField(help_text="All that the description has.")

    class Meta(MessageTypeSerializer.Meta):
        fields = [*MessageTypeSerializer.Meta.fields, "messages", "versions", "files", "descriptor_set"]

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_files(self, message_type: MessageType) -> dict[str, str]:
        return dict(message_type.newest.files)

    def get_descriptor_set(self, message_type: MessageType) -> str:
        return base64.b64encode(bytes(message_type.newest.descriptors)).decode()

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_messages(self, message_type: MessageType) -> list[str]:
        return message_names(bytes(message_type.newest.descriptors))


class MessageTypeChangeSerializer(StrictSerializer):
    """What is left out stays. A description is given once: as sources in `files`, or as what protoc makes of them with
    `--include_imports --descriptor_set_out` in `descriptor_set`."""

    files = serializers.DictField(
        child=serializers.CharField(trim_whitespace=False, allow_blank=True),
        required=False,
        allow_empty=False,
        help_text="Sources by the names under which they import each other.",
    )
    descriptor_set = serializers.CharField(required=False, help_text="A FileDescriptorSet in base64.")
    topics = serializers.ListField(
        child=serializers.CharField(max_length=249),
        required=False,
        max_length=MAX_TOPICS,
        help_text="Which carry it; of a queue's partitions, without their numbers.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "files" in attrs and "descriptor_set" in attrs:
            raise serializers.ValidationError("give either files or descriptor_set")
        given: dict[str, Any] = {"topics": attrs["topics"]} if "topics" in attrs else {}
        if "files" in attrs:
            given["description"] = Description.of(attrs["files"])
        elif "descriptor_set" in attrs:
            given["description"] = Description(_decoded(attrs["descriptor_set"]))
        return given


class MessageTypeCreationSerializer(MessageTypeChangeSerializer):
    name = serializers.CharField(max_length=100)
    message = serializers.CharField(max_length=255, help_text="Its whole name, such as `shop.Order`.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = super().validate(attrs)
        if "description" not in given:
            raise serializers.ValidationError("give files or descriptor_set")
        return {"name": attrs["name"], "message": attrs["message"], **given}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise serializers.ValidationError({"descriptor_set": f"this is not base64: {error}"}) from error


class IncompatibilitySerializer(serializers.Serializer[Any]):
    where = serializers.CharField(help_text="A message, field or enum value by its whole name.")
    why = serializers.CharField(help_text="What would be misread, and what to do.")


class MessageTypePlanSerializer(ChangePlanSerializer):
    version = serializers.IntegerField(help_text="The one there is then.")
    new_version = serializers.BooleanField(source="is_new_version")
    compatible = serializers.BooleanField(source="is_compatible", help_text="Without that it is refused.")
    incompatibilities = IncompatibilitySerializer(many=True)
    topics_added = serializers.ListField(child=serializers.CharField())
    topics_removed = serializers.ListField(child=serializers.CharField())
