"""What the resources look like on the wire."""

import base64
import json
from typing import Any

from rest_framework import serializers

from queueapi.models import Operation, Tenant
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.permissions import requester_of
from queueapi.rest.tenancy import VisibleField, is_told_details
from queueapi.selectors.operation_words import error_of_operation, result_of_operation


class PublishSerializer(StrictSerializer):
    """One message. The payload is given once: as JSON in `payload`, or as raw bytes in `payload_base64`."""

    tenant = VisibleField(
        queryset=Tenant.objects.all(),
        required=False,
        help_text="Whose message it is. A tenant's people and tokens may leave it out: it is theirs.",
    )
    entity = serializers.UUIDField(help_text="Messages of one entity keep their order.")
    payload = serializers.JSONField(required=False, allow_null=True)
    payload_base64 = serializers.CharField(required=False, allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "tenant" not in attrs:
            attrs["tenant"] = self._own_tenant()
        if ("payload" in attrs) == ("payload_base64" in attrs):
            raise serializers.ValidationError("give either payload or payload_base64")
        attrs["data"] = json.dumps(attrs["payload"]).encode() if "payload" in attrs else _decoded(attrs)
        return attrs

    def _own_tenant(self) -> Tenant:
        tenant_id = requester_of(self.context["request"]).tenant_id
        if tenant_id is None:
            raise serializers.ValidationError({"tenant": "say whose message it is: you belong to no tenant"})
        return Tenant.objects.get(pk=tenant_id)


def _decoded(attrs: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(attrs["payload_base64"], validate=True)
    except ValueError as error:
        raise serializers.ValidationError({"payload_base64": f"this is not base64: {error}"}) from error


class PublishedSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    partition = serializers.IntegerField(help_text="The queue's partition the entity belongs to.")
    offset = serializers.IntegerField()
    timestamp_ms = serializers.IntegerField()


class OperationSerializer(serializers.ModelSerializer[Operation]):
    class Meta:
        model = Operation
        fields = [
            "id", "kind", "summary", "state", "done", "total", "result", "error", "attempts", "created_at",
            "started_at", "finished_at",
        ]  # fmt: skip
        extra_kwargs = {"result": {"help_text": "What came of it, once it has succeeded: `message` says so."}}

    def to_representation(self, instance: Operation) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        is_detailed = is_told_details(self.context)
        return shown | {
            "result": result_of_operation(instance, is_detailed=is_detailed),
            "error": error_of_operation(instance, is_detailed=is_detailed),
        }
