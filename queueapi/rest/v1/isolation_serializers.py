"""Isolation requests on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.access.tenancy import visible
from queueapi.actions.isolated_queues import ASKABLE
from queueapi.models import IsolationComment, IsolationRequest, Queue, Tenant
from queueapi.names import unknown_name
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.types import Typed
from queueapi.rest.permissions import requester_of
from queueapi.rest.tenancy import is_told_details
from queueapi.selectors.isolation_words import error_of, waits_for

_LONGEST_REASON = 500


class AskedQueueSerializer(Typed, serializers.ModelSerializer[Queue]):
    """Which of the shared queues, and what is to be other than there. What is left out is as in the shared queue."""

    name = serializers.CharField(max_length=100, help_text="Of a queue of the rule engine that all share.")

    class Meta:
        model = Queue
        fields = ["name", *ASKABLE]
        # The action judges the whole of it.
        validators: list[Any] = []
        extra_kwargs = {name: {"required": False} for name in ASKABLE}

    def to_internal_value(self, data: Any) -> Any:
        """What is not entered is not there: a default would stand for the shared queue's value."""
        if isinstance(data, dict):
            known = list(self.fields)
            if wrong := {name: [unknown_name("field", name, known)] for name in data if name not in known}:
                raise serializers.ValidationError(wrong)
        checked = super().to_internal_value(data)
        return {name: value for name, value in checked.items() if name in data}


class _QueuesAndReason(StrictSerializer):
    queues = AskedQueueSerializer(many=True, allow_empty=False)
    reason = serializers.CharField(max_length=_LONGEST_REASON, help_text="For whoever decides.")


class IsolationCreationSerializer(_QueuesAndReason):
    tenant = serializers.UUIDField(required=False, help_text="Left out: the caller's own.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The tenant's row, of those that whoever asks may know of."""
        requester = requester_of(self.context["request"])
        tenant_id = attrs.get("tenant", requester.tenant_id)
        if tenant_id is None:
            raise serializers.ValidationError({"tenant": ["name the tenant that is to be isolated"]})
        rows = visible(requester, Tenant.objects.select_related("profile"))
        if (tenant := rows.filter(pk=tenant_id).first()) is None:
            raise serializers.ValidationError({"tenant": [f"there is no tenant {tenant_id}"]})
        return attrs | {"tenant": tenant}


class DirectIsolationSerializer(_QueuesAndReason):
    """What an administrator has done at once."""


class IsolationChangeSerializer(StrictSerializer):
    queues = AskedQueueSerializer(many=True, allow_empty=False, required=False)
    reason = serializers.CharField(max_length=_LONGEST_REASON, required=False)


class ApprovalSerializer(StrictSerializer):
    comment = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)


class IsolationRefusalSerializer(StrictSerializer):
    comment = serializers.CharField(max_length=500, help_text="For whoever asked.")


class CommentTextSerializer(StrictSerializer):
    text = serializers.CharField(max_length=2000)


class ReturnSerializer(StrictSerializer):
    discard_letters = serializers.BooleanField(
        required=False, default=False, help_text="Whether dead letters that nobody has decided on are discarded."
    )


class CommentSerializer(serializers.ModelSerializer[IsolationComment]):
    class Meta:
        model = IsolationComment
        fields = ["author_name", "at", "text"]


class CutSerializer(serializers.Serializer[Any]):
    queue = serializers.UUIDField(help_text="The tenant's own one.")
    partition = serializers.IntegerField(help_text="Of the shared queue.")
    offset = serializers.IntegerField(help_text="Up to which it must be consumed before.")


class IsolationRequestSerializer(serializers.ModelSerializer[IsolationRequest]):
    tenant_name = serializers.CharField(source="tenant.name", read_only=True)
    queues = AskedQueueSerializer(many=True, read_only=True)
    comments = CommentSerializer(many=True, read_only=True)
    waits_for = serializers.SerializerMethodField(
        help_text="What its operation does or waits for at the moment; empty: nothing is under way."
    )
    is_cancelled = serializers.BooleanField(
        read_only=True, help_text="Whether one that is `failed` was cancelled, and nothing went wrong."
    )
    cut = serializers.SerializerMethodField(
        help_text="Where shared partitions ended when the last message of the tenant had come there."
    )

    class Meta:
        model = IsolationRequest
        fields = [
            "id", "tenant", "tenant_name", "state", "queues", "reason", "requested_by_name", "created_at",
            "decided_by_name", "decided_at", "decision", "operation", "waits_for", "cut", "error",
            "is_cancelled", "comments", "version",
        ]  # fmt: skip
        read_only_fields = fields

    def to_representation(self, instance: IsolationRequest) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        return shown | {"error": error_of(instance, is_detailed=is_told_details(self.context))}

    def get_waits_for(self, request: IsolationRequest) -> str:
        return waits_for(request, is_detailed=is_told_details(self.context))

    @extend_schema_field(CutSerializer(many=True))
    def get_cut(self, request: IsolationRequest) -> list[dict[str, Any]]:
        return [
            {"queue": queue, "partition": partition, "offset": offset}
            for queue, ends in sorted(request.cut.items())
            for partition, offset in ends
        ]
