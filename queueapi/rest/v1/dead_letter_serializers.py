"""Dead letters and their groups on the wire."""

import base64
import json
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.models import (
    DeadLetter,
    DeadLetterEdit,
    DeadLetterGroup,
    DeadLetterTrend,
    LedgerEntry,
    QuarantinedLetter,
)
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer
from queueapi.rest.permissions import requester_of
from queueapi.rest.tenancy import is_told_details
from queueapi.rest.v1.decoded_payloads import DecodedSerializer, decoded
from queueapi.rest.v1.histories import HistorySerializer
from queueapi.rest.v1.selections import SelectionSerializer
from queueapi.selectors.dead_letters import headers_told
from queueapi.selectors.ledger import ledger_of
from queueapi.selectors.letter_groups import last_replay, tenants_hit
from queuecore.messages import Key, QueueMessage


class LedgerSerializer(serializers.ModelSerializer[LedgerEntry]):
    class Meta:
        model = LedgerEntry
        fields = ["at", "actor_name", "action", "letter", "group", "replay", "count", "reason", "before", "after"]


class LetterLineSerializer(serializers.ModelSerializer[DeadLetter]):
    """A letter in a list: without its message. A tenant's people are not told which service it was."""

    class Meta:
        model = DeadLetter
        fields = [
            "id", "queue", "tenant", "group", "state", "state_changed_at", "topic", "partition", "offset", "key",
            "payload_size", "payload_missing", "is_edited", "origin", "service", "handler", "consumer_group", "stage",
            "reason", "exception_class", "exception_message", "fingerprint", "attempts", "sent_at", "first_failed_at",
            "failed_at", "replay_count", "replay", "replay_of", "note",
        ]  # fmt: skip

    def to_representation(self, instance: DeadLetter) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        return shown if is_told_details(self.context) else shown | {"service": ""}


class _ToldHeaders(serializers.JSONField):
    """As their reader may know them; values are base64."""

    def to_representation(self, value: Any) -> Any:
        return value if is_told_details(self.context) else headers_told(value)


class EditSerializer(serializers.ModelSerializer[DeadLetterEdit]):
    headers = _ToldHeaders(read_only=True)
    payload_base64 = serializers.SerializerMethodField()
    decoded = serializers.SerializerMethodField()
    raw_key_base64 = serializers.SerializerMethodField()

    class Meta:
        model = DeadLetterEdit
        fields = ["key", "raw_key_base64", "headers", "payload_base64", "decoded", "edited_at", "edited_by"]

    def get_payload_base64(self, edit: DeadLetterEdit) -> str:
        return base64.b64encode(edit.payload).decode()

    @extend_schema_field(DecodedSerializer(allow_null=True))
    def get_decoded(self, edit: DeadLetterEdit) -> Any:
        return decoded(edit.letter.queue, bytes(edit.payload))

    def get_raw_key_base64(self, edit: DeadLetterEdit) -> str | None:
        return None if edit.raw_key is None else base64.b64encode(edit.raw_key).decode()


class FailedAttemptSerializer(serializers.Serializer[Any]):
    """One of the attempts that a letter's message had, as far as it tells of them."""

    number = serializers.IntegerField()
    failed_at_ms = serializers.IntegerField()
    outcome = serializers.CharField()
    fault = serializers.CharField()
    message = serializers.CharField()


class LetterSerializer(LetterLineSerializer):
    """A letter whole. `edit` is what a replay sends instead of the original; header values are base64. `decoded` is
    null where nobody said which message the queue carries."""

    headers = _ToldHeaders(source="body.headers", read_only=True)
    stack_trace = serializers.CharField(source="body.stack_trace", read_only=True)
    failures = serializers.SerializerMethodField()
    payload_base64 = serializers.SerializerMethodField()
    decoded = serializers.SerializerMethodField()
    raw_key_base64 = serializers.SerializerMethodField()
    edit = serializers.SerializerMethodField()
    ledger = serializers.SerializerMethodField()

    class Meta(LetterLineSerializer.Meta):
        fields = [
            *LetterLineSerializer.Meta.fields, "letter_topic", "letter_partition", "letter_offset", "headers",
            "payload_base64", "decoded", "raw_key_base64", "stack_trace", "failures", "edit", "ledger",
        ]  # fmt: skip

    @extend_schema_field(FailedAttemptSerializer(many=True))
    def get_failures(self, letter: DeadLetter) -> Any:
        return FailedAttemptSerializer(letter.body.failures or (), many=True).data

    def get_payload_base64(self, letter: DeadLetter) -> str:
        return base64.b64encode(letter.body.payload).decode()

    @extend_schema_field(DecodedSerializer(allow_null=True))
    def get_decoded(self, letter: DeadLetter) -> Any:
        return decoded(letter.queue, bytes(letter.body.payload))

    def get_raw_key_base64(self, letter: DeadLetter) -> str | None:
        return None if letter.raw_key is None else base64.b64encode(letter.raw_key).decode()

    @extend_schema_field(EditSerializer(allow_null=True))
    def get_edit(self, letter: DeadLetter) -> Any:
        edits = DeadLetterEdit.objects.filter(letter=letter).select_related("letter__queue")
        edit = edits.first() if letter.is_edited else None
        return None if edit is None else EditSerializer(edit, context=self.context).data

    @extend_schema_field(LedgerSerializer(many=True))
    def get_ledger(self, letter: DeadLetter) -> Any:
        tenant_id = requester_of(self.context["request"]).tenant_id
        return LedgerSerializer(ledger_of(letter, tenant_id), many=True).data


class GroupLineSerializer(serializers.ModelSerializer[DeadLetterGroup]):
    class Meta:
        model = DeadLetterGroup
        fields = [
            "id", "queue", "fingerprint", "exception_class", "exception_message", "first_seen", "last_seen", "letters",
            "open_letters", "note", "noted_by", "noted_at",
        ]  # fmt: skip


class TenantHitSerializer(serializers.Serializer[Any]):
    tenant = serializers.UUIDField(source="tenant.id", default=None, allow_null=True)
    letters = serializers.IntegerField()
    open_letters = serializers.IntegerField()


class ReplayOutcomeSerializer(serializers.Serializer[Any]):
    replay = serializers.UUIDField(source="replay.id")
    state = serializers.CharField(source="replay.operation.state")
    letters = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()


class GroupSerializer(GroupLineSerializer):
    """A group with the tenants that have most of its letters, and what became of its last replay."""

    tenants = serializers.SerializerMethodField()
    last_replay = serializers.SerializerMethodField()

    class Meta(GroupLineSerializer.Meta):
        fields = [*GroupLineSerializer.Meta.fields, "tenants", "last_replay"]

    @extend_schema_field(TenantHitSerializer(many=True))
    def get_tenants(self, group: DeadLetterGroup) -> Any:
        return TenantHitSerializer(tenants_hit(group), many=True).data

    @extend_schema_field(ReplayOutcomeSerializer(allow_null=True))
    def get_last_replay(self, group: DeadLetterGroup) -> Any:
        outcome = last_replay(group)
        return outcome and ReplayOutcomeSerializer(outcome).data


class LetterPointSerializer(serializers.ModelSerializer[DeadLetterTrend]):
    class Meta:
        model = DeadLetterTrend
        fields = ["at", "letters"]
        extra_kwargs = {"at": {"help_text": "When the hour began."}}


class LetterHistorySerializer(HistorySerializer):
    points = LetterPointSerializer(many=True)


class QuarantinedSerializer(serializers.ModelSerializer[QuarantinedLetter]):
    class Meta:
        model = QuarantinedLetter
        fields = ["letter_topic", "letter_partition", "letter_offset", "error", "at"]


class ReasonSerializer(StrictSerializer):
    reason = serializers.CharField(required=False, allow_blank=True, default="", help_text="For the ledger.")


class DecisionSerializer(ReasonSerializer, SelectionSerializer):
    """Letters, and why."""


class NoteSerializer(StrictSerializer):
    note = serializers.CharField(allow_blank=True, trim_whitespace=True, help_text="Empty: take the note away.")


class PlanSerializer(ChangePlanSerializer):
    """What would be changed; `why_not` where nothing would."""

    letters = serializers.IntegerField()
    refused = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many of each state stay as they are."
    )
    missing = serializers.IntegerField()
    why_not = serializers.CharField()


class SeenSerializer(ReasonSerializer):
    seen = serializers.DateTimeField(
        required=False,
        default=None,
        allow_null=True,
        help_text="`edited_at` of the edit that this one replaces; left out: there was none.",
    )


class MessageSerializer(SeenSerializer):
    """The message to send. Its key is given once, as a UUID or as bytes; so is its payload, as JSON or as bytes."""

    key = serializers.UUIDField(required=False, allow_null=True, default=None)
    raw_key_base64 = serializers.CharField(required=False, allow_null=True, default=None)
    headers = serializers.DictField(child=serializers.CharField(allow_blank=True), help_text="Values are base64.")
    payload = serializers.JSONField(required=False, allow_null=True)
    payload_base64 = serializers.CharField(required=False, allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("payload" in attrs) == ("payload_base64" in attrs):
            raise serializers.ValidationError("give either payload or payload_base64")
        if attrs["key"] is not None and attrs["raw_key_base64"] is not None:
            raise serializers.ValidationError("give either key or raw_key_base64")
        return {**attrs, "message": QueueMessage(_key(attrs), _payload(attrs), _headers(attrs))}


def _key(attrs: dict[str, Any]) -> Key:
    if attrs["raw_key_base64"] is None:
        return attrs["key"]  # type: ignore[no-any-return]
    return _decoded("raw_key_base64", attrs["raw_key_base64"])


def _payload(attrs: dict[str, Any]) -> bytes:
    if "payload" in attrs:
        return json.dumps(attrs["payload"]).encode()
    return _decoded("payload_base64", attrs["payload_base64"])


def _headers(attrs: dict[str, Any]) -> dict[str, bytes]:
    return {name: _decoded("headers", value) for name, value in attrs["headers"].items()}


def _decoded(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise serializers.ValidationError({field: f"this is not base64: {error}"}) from error
