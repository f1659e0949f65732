"""Queues on the wire: what they are, what may be entered, their pauses and consumers."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.actions.queue_checks import CHANGEABLE
from queueapi.config import config
from queueapi.handler_options import shown_options
from queueapi.models import ConsumerStanding, Pause, Queue, Tenant
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.types import Typed
from queueapi.rest.permissions import requester_of
from queueapi.rest.tenancy import VisibleField

_MADE_WITH: Final = ("tenant", "name", "topic", "service_type", "partitions")
# What actions of their own change.
_LIFE: Final = ("first_partition", "former_first", "former_partitions", "state", "operation", "successor")


class NamingChoiceField(serializers.ChoiceField):
    """Names the choices there are when it refuses one."""

    default_error_messages = {"invalid_choice": "there is no {input!r}; choose one of {choices}"}

    def fail(self, key: str, **kwargs: Any) -> Any:
        super().fail(key, choices=", ".join(map(str, self.choices)), **kwargs)


class PauseSerializer(serializers.ModelSerializer[Pause]):
    class Meta:
        model = Pause
        fields = ["tenant", "partition", "operation", "reason", "paused_by", "paused_at"]
        extra_kwargs = {"operation": {"help_text": "What needs it, and lifts it by itself; null: a person's word."}}


class QueueSerializer(serializers.ModelSerializer[Queue]):
    pauses = PauseSerializer(many=True, read_only=True)
    handler_options = serializers.SerializerMethodField(help_text="Secrets are hidden.")
    hash_function = serializers.SerializerMethodField(
        help_text="How entities are divided among partitions: the installation's, the same for all queues."
    )

    class Meta:
        model = Queue
        fields = [
            "id", *_MADE_WITH, *_LIFE, "hash_function", *CHANGEABLE, "pauses", "created_at", "version",
        ]  # fmt: skip
        read_only_fields = _LIFE
        extra_kwargs = {
            "first_partition": {"help_text": "Its partitions are numbered from here on."},
            "former_first": {"help_text": "While it is resized: the first of those that are consumed before these."},
            "former_partitions": {"help_text": "How many of those there are."},
        }

    def get_hash_function(self, _: Queue) -> str:
        return config().queue.partitions.hash_function_name

    @extend_schema_field(dict[str, Any])
    def get_handler_options(self, queue: Queue) -> dict[str, object]:
        """Nothing for a tenant's people: they are the installation's, also in a queue of the tenant's own."""
        request = self.context.get("request")
        hidden = request is not None and requester_of(request).tenant_id is not None
        return {} if hidden else shown_options(queue)


class QueueChangeSerializer(Typed, serializers.ModelSerializer[Queue]):
    """What may change. What is left out stays; a secret option that comes back hidden stays as well."""

    serializer_choice_field = NamingChoiceField

    class Meta:
        model = Queue
        fields = CHANGEABLE
        # The action judges the whole of it.
        validators: list[Any] = []


class QueueCreationSerializer(QueueChangeSerializer):
    tenant = VisibleField(
        queryset=Tenant.objects.all(), required=False, help_text="Whose queue it is. Left out: the system's."
    )

    class Meta(QueueChangeSerializer.Meta):
        fields = (*_MADE_WITH, *CHANGEABLE)


class ResumeSerializer(StrictSerializer):
    """Of what the pause is: one tenant's messages, one partition, or, with neither, the whole queue."""

    tenant = VisibleField(queryset=Tenant.objects.all(), required=False, allow_null=True)
    partition = serializers.IntegerField(required=False, allow_null=True)


class PausingSerializer(ResumeSerializer):
    reason = serializers.CharField(help_text="For whoever finds it paused.")


class ConsumerSerializer(serializers.ModelSerializer[ConsumerStanding]):
    """Where its host is no longer `alive`, the rest is as it last was. `counts` are of the consumer's life,
    `statistics` the same as ThingsBoard calls them, `tenants` the same for each tenant, by its id; `budget` is what
    each second was spent on."""

    service = serializers.CharField(source="service_id", read_only=True)
    alive = serializers.BooleanField(source="is_alive", read_only=True)
    statistics = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    tenants = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()),
        read_only=True,
        help_text="Under an empty id what names no tenant, under `other` what names none that there could be.",
    )

    class Meta:
        model = ConsumerStanding
        fields = [
            "service", "alive", "queue", "consumer_group", "partitions", "state", "reason", "since", "as_of", "counts",
            "statistics", "tenants", "handled_per_s", "budget",
        ]  # fmt: skip
