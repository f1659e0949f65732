"""Alerts, their rules, channels and silences on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.actions.alert_rules import CHANGEABLE, CHANNEL_FIELDS, RULE_FIELDS
from queueapi.alerting.channels import shown_options
from queueapi.choices import AlertSeverity, AlertState
from queueapi.models import Alert, AlertChannel, AlertDelivery, AlertNotice, AlertRule, Queue, Silence, Tenant
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.types import Typed
from queueapi.rest.tenancy import VisibleField, is_told_details

_LONGEST_REASON = 500


class AlertNoticeSerializer(serializers.ModelSerializer[AlertNotice]):
    channel = serializers.CharField(source="channel.name", help_text="Its name.")
    state = serializers.CharField(source="delivery.state", help_text="`pending`, `sent` or `failed`.")
    attempts = serializers.IntegerField(source="delivery.attempts")
    error = serializers.CharField(source="delivery.error", help_text="What went wrong last; empty: nothing.")

    class Meta:
        model = AlertNotice
        fields = ["channel", "kind", "state", "attempts", "error"]


class AlertSerializer(serializers.ModelSerializer[Alert]):
    link = serializers.CharField(read_only=True, help_text="The path of the page that explains it.")
    unit = serializers.CharField(read_only=True, help_text="Of value and threshold.")
    subject = serializers.CharField(source="subject_name", read_only=True, help_text="What it is about.")
    # They change all the time, and nobody decides by them alone.
    untagged: tuple[str, ...] = ("value", "reason", "clear_since")

    class Meta:
        model = Alert
        fields = [
            "id", "state", "severity", "rule", "rule_name", "metric", "subject", "subject_key", "tenant", "queue",
            "value", "threshold", "unit", "reason", "link", "since", "fired_at", "clear_since", "told_at",
            "escalated_at", "acknowledged_at", "acknowledged_by", "note", "resolved_at", "resolution",
        ]  # fmt: skip
        read_only_fields = fields


class OneAlertSerializer(AlertSerializer):
    notices = serializers.SerializerMethodField(
        help_text="What which channel was told, and whether it heard. Empty for a tenant's people."
    )
    untagged = (*AlertSerializer.untagged, "notices")

    class Meta(AlertSerializer.Meta):
        fields = [*AlertSerializer.Meta.fields, "notices"]

    @extend_schema_field(AlertNoticeSerializer(many=True))
    def get_notices(self, alert: Alert) -> Any:
        """Channels are the installation's."""
        if not is_told_details(self.context):
            return []
        return AlertNoticeSerializer(alert.notices.select_related("channel", "delivery"), many=True).data


class AlertCountsSerializer(serializers.Serializer[Any]):
    """Of the alerts that the caller sees: how many are in each state, and of those that fire, of each severity."""

    states = serializers.DictField(child=serializers.IntegerField(), help_text=f"{', '.join(AlertState.values)}.")
    firing = serializers.DictField(child=serializers.IntegerField(), help_text=f"{', '.join(AlertSeverity.values)}.")
    evaluated_at = serializers.DateTimeField(allow_null=True, help_text="When rules were last looked at; null: never.")
    untagged = ("evaluated_at",)


class AcknowledgementSerializer(StrictSerializer):
    note = serializers.CharField(
        max_length=_LONGEST_REASON, required=False, default="", allow_blank=True, help_text="For whoever looks next."
    )


class AlertSilenceSerializer(StrictSerializer):
    until = serializers.DateTimeField(help_text="Within the next 30 days.")
    reason = serializers.CharField(max_length=_LONGEST_REASON, help_text="For whoever wonders that it is so quiet.")


class SilenceCreationSerializer(AlertSilenceSerializer):
    """It is of alerts that match all that is named; name one at least."""

    rule = VisibleField(queryset=AlertRule.objects.all(), required=False, allow_null=True)
    tenant = VisibleField(queryset=Tenant.objects.all(), required=False, allow_null=True)
    queue = VisibleField(queryset=Queue.objects.all(), required=False, allow_null=True)
    subject_key = serializers.CharField(
        max_length=300, required=False, allow_blank=True, default="", help_text="As an alert has it."
    )


class SilenceSerializer(serializers.ModelSerializer[Silence]):
    class Meta:
        model = Silence
        fields = ["id", "rule", "tenant", "queue", "subject_key", "reason", "created_by", "created_at", "until"]
        read_only_fields = fields


class _RuleFields(Typed, serializers.ModelSerializer[AlertRule]):
    channels = VisibleField(
        many=True, queryset=AlertChannel.objects.all(), required=False, help_text="Who is told when it fires."
    )
    escalation_channels = VisibleField(
        many=True,
        queryset=AlertChannel.objects.all(),
        required=False,
        help_text="Who is told besides when nobody has acknowledged an alert for `escalate_after_s`.",
    )

    class Meta:
        model = AlertRule
        fields: tuple[str, ...] = (*CHANGEABLE, *CHANNEL_FIELDS)
        # The action judges the whole of it.
        validators: list[Any] = []
        extra_kwargs = {
            "threshold": {"help_text": "It fires when the value is above this for `for_s`."},
            "resolve_at": {
                "help_text": "It resolves when the value is this or less for `resolve_for_s`. Null: the threshold."
            },
            "enabled": {"help_text": "One for a queue or tenant that is not enabled switches wider ones off for it."},
        }


class RuleChangeSerializer(_RuleFields):
    """What may change. What is left out stays."""


class RuleCreationSerializer(_RuleFields):
    """With none of tenant, queue and request_topic it is for everything that its metric is of. One that names something
    takes the place of wider ones of the same metric there."""

    tenant = VisibleField(queryset=Tenant.objects.all(), required=False, allow_null=True)
    queue = VisibleField(queryset=Queue.objects.all(), required=False, allow_null=True)

    class Meta(_RuleFields.Meta):
        fields = (*RULE_FIELDS, *CHANNEL_FIELDS)


class RuleSerializer(serializers.ModelSerializer[AlertRule]):
    unit = serializers.CharField(read_only=True, help_text="Of threshold and resolve_at.")
    is_default = serializers.BooleanField(read_only=True, help_text="Whether it comes with the system.")

    class Meta:
        model = AlertRule
        fields = ["id", *RULE_FIELDS, *CHANNEL_FIELDS, "unit", "is_default", "created_at", "version"]
        read_only_fields = fields

    def to_representation(self, instance: AlertRule) -> dict[str, Any]:
        """Channels are the installation's: a tenant's people see none."""
        shown = super().to_representation(instance)
        return shown if is_told_details(self.context) else {**shown, **{name: [] for name in CHANNEL_FIELDS}}


class ChannelChangeSerializer(Typed, serializers.ModelSerializer[AlertChannel]):
    """What may change. What is left out stays; a secret option that comes back hidden stays as well."""

    options = serializers.DictField(
        required=False,
        help_text="Of `email`: `recipients`. Of `webhook`: `url`, `headers`, `secret`, `timeout_ms`, `allow_private`. "
        "Of `slack`: `url`, `timeout_ms`, `allow_private`.",
    )

    class Meta:
        model = AlertChannel
        fields: tuple[str, ...] = ("name", "options", "enabled")
        validators: list[Any] = []


class ChannelCreationSerializer(ChannelChangeSerializer):
    class Meta(ChannelChangeSerializer.Meta):
        fields = ("name", "kind", "options", "enabled")
        extra_kwargs = {"options": {"required": True}}


class ChannelSerializer(serializers.ModelSerializer[AlertChannel]):
    options = serializers.SerializerMethodField(help_text="Secrets are hidden.")

    class Meta:
        model = AlertChannel
        fields = ["id", "name", "kind", "options", "enabled", "created_at", "version"]
        read_only_fields = ["name", "kind", "enabled"]

    @extend_schema_field(dict[str, Any])
    def get_options(self, channel: AlertChannel) -> dict[str, object]:
        return shown_options(channel.kind, channel.options)


class DeliverySerializer(serializers.ModelSerializer[AlertDelivery]):
    notices = serializers.IntegerField(source="notice_count", help_text="Of how many alerts it tells.")

    class Meta:
        model = AlertDelivery
        fields = ["id", "state", "attempts", "notices", "created_at", "due_at", "finished_at", "error"]


class TrialSerializer(serializers.Serializer[Any]):
    """What came of a test."""

    delivered = serializers.BooleanField()
    error = serializers.CharField(help_text="Why it was not delivered; empty: it was.")
    took_ms = serializers.IntegerField()
