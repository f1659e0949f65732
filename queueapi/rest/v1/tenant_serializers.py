"""Tenants and their profiles on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.actions.tenant_profiles import PROFILE_FIELDS
from queueapi.actions.tenant_states import LONGEST_REASON
from queueapi.actions.tenants import TENANT_FIELDS
from queueapi.admission import admission
from queueapi.models import Tenant, TenantProfile
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.types import Typed
from queueapi.selectors.tenants import dedicated_services, quota_lines
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType


class ProfileChangeSerializer(Typed, serializers.ModelSerializer[TenantProfile]):
    """Where a limit is null, there is none. What is left out of a change stays."""

    submit_strategies = serializers.ListField(
        child=serializers.ChoiceField([kind.value for kind in SubmitStrategyType]),
        required=False,
        help_text="Those that own queues of its tenants may have. Empty: all.",
    )
    processing_strategies = serializers.ListField(
        child=serializers.ChoiceField([kind.value for kind in ProcessingStrategyType]),
        required=False,
        help_text="Those that own queues of its tenants may have. Empty: all.",
    )

    class Meta:
        model = TenantProfile
        fields = PROFILE_FIELDS
        # The action judges the whole of it.
        validators: list[Any] = []
        extra_kwargs = {
            "max_queues": {"help_text": "How many queues of its own a tenant may have."},
            "max_partitions_per_queue": {"help_text": "How many partitions each of them may have."},
            "min_retention_ms": {"help_text": "For how long own queues keep messages at least."},
            "max_retention_ms": {"help_text": "For how long own queues keep messages at most."},
            "approves_isolation": {"help_text": "Whether isolation requests of its tenants need nobody's approval."},
            "label": {"help_text": "What a service must have to consume own queues of its tenants. Empty: nothing."},
            "messages_per_s": {"help_text": "Published in each second, through each process."},
            "bytes_per_s": {"help_text": "Of payloads published in each second, through each process."},
            "burst_s": {"help_text": "After a quiet time, so many seconds' worth may come at once."},
            "partitions": {"help_text": "Of all own queues of a tenant together."},
            "stored_bytes": {"help_text": "Of the messages in a tenant's own queues."},
        }


class ProfileSerializer(ProfileChangeSerializer):
    tenants = serializers.IntegerField(source="tenant_count", read_only=True, help_text="How many tenants have it.")
    is_default = serializers.BooleanField(read_only=True)

    class Meta(ProfileChangeSerializer.Meta):
        fields = ("id", *PROFILE_FIELDS, "is_default", "tenants", "created_at", "updated_at")


class OneProfileSerializer(ProfileSerializer):
    dedicated_services = serializers.SerializerMethodField(
        help_text="Services that are there, and consume own queues of its tenants alone: they say so by its id."
    )

    class Meta(ProfileSerializer.Meta):
        fields = (*ProfileSerializer.Meta.fields, "dedicated_services")

    def get_dedicated_services(self, profile: TenantProfile) -> list[str]:
        return dedicated_services(profile)


class TenantChangeSerializer(Typed, serializers.ModelSerializer[Tenant]):
    """Where a quota is null, the profile's holds. What is left out of a change stays."""

    class Meta:
        model = Tenant
        fields = TENANT_FIELDS
        # The action judges the whole of it.
        validators: list[Any] = []


class TenantSerializer(serializers.ModelSerializer[Tenant]):
    """Quotas that are null are the profile's."""

    profile_name = serializers.CharField(source="profile.name", read_only=True)
    queues = serializers.IntegerField(source="queue_count", read_only=True, help_text="How many of its own it has.")

    class Meta:
        model = Tenant
        fields = (
            *("id", "name", "description", "profile", "profile_name", "state", "reason"),
            *TENANT_FIELDS[3:],
            *("queues", "created_at", "updated_at"),
        )


class QuotaSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = serializers.IntegerField(allow_null=True, help_text="The one that holds. Null: no limit.")
    is_own = serializers.BooleanField(help_text="Whether it is the tenant's own; else it is the profile's.")


class UsageSerializer(serializers.Serializer[Any]):
    """What the process that answers has let through since it began. Others count for themselves."""

    since = serializers.DateTimeField()
    messages = serializers.IntegerField()
    bytes = serializers.IntegerField(help_text="Of payloads.")
    refused = serializers.IntegerField(help_text="Messages that a quota or a suspension kept out.")


class OneTenantSerializer(TenantSerializer):
    quotas = serializers.SerializerMethodField(help_text="Those that hold, each with where it comes from.")
    published_here = serializers.SerializerMethodField()
    # Each process tells another figure.
    untagged = ("published_here",)

    class Meta(TenantSerializer.Meta):
        fields = (*TenantSerializer.Meta.fields, "quotas", "published_here")

    @extend_schema_field(QuotaSerializer(many=True))
    def get_quotas(self, tenant: Tenant) -> Any:
        return QuotaSerializer(quota_lines(tenant), many=True).data

    @extend_schema_field(UsageSerializer)
    def get_published_here(self, tenant: Tenant) -> Any:
        return UsageSerializer(admission().usage(tenant.id)).data


class SuspensionSerializer(StrictSerializer):
    reason = serializers.CharField(max_length=LONGEST_REASON, help_text="For whoever is refused.")
