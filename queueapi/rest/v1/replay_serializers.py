"""Replays on the wire."""

from typing import Any

from rest_framework import serializers

from queueapi.models import Queue, Replay, ReplayItem
from queueapi.replaying import DEFAULT_RAMP, MAX_STEPS, ReplaySettings
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer
from queueapi.rest.tenancy import VisibleField, is_told_details
from queueapi.rest.v1.selections import SelectionSerializer
from queueapi.selectors.operation_words import error_of_operation


class ReplaySerializer(serializers.ModelSerializer[Replay]):
    """`state` is its operation's; `decided` counts what is known of: succeeded, failed again, or not sent at all."""

    state = serializers.CharField(source="operation.state")
    paused = serializers.BooleanField(source="operation.is_paused")
    error = serializers.SerializerMethodField(help_text="Why it failed; empty: it has not.")
    total = serializers.IntegerField(source="operation.total")
    created_by = serializers.CharField(source="operation.created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField(source="operation.created_at")
    started_at = serializers.DateTimeField(source="operation.started_at", allow_null=True)
    finished_at = serializers.DateTimeField(source="operation.finished_at", allow_null=True)

    class Meta:
        model = Replay
        fields = [
            "id", "operation", "state", "paused", "error", "filter", "target", "rate_per_s", "ramp", "abort_ratio",
            "abort_min", "max_replays", "total", "sent", "succeeded", "failed", "skipped", "created_by", "created_at",
            "started_at", "finished_at",
        ]  # fmt: skip

    def get_error(self, replay: Replay) -> str:
        return error_of_operation(replay.operation, is_detailed=is_told_details(self.context))


class ReplayItemSerializer(serializers.ModelSerializer[ReplayItem]):
    class Meta:
        model = ReplayItem
        fields = ["sequence", "letter", "state", "sent_at", "reason"]


class ReplayRequestSerializer(SelectionSerializer):
    """Which letters, where to, and how carefully. A filter's letters are begun with a ramp unless another is given."""

    target = VisibleField(
        queryset=Queue.objects.all(), required=False, allow_null=True, help_text="Another queue; left out: their own."
    )
    rate_per_s = serializers.FloatField(
        required=False, allow_null=True, help_text="Letters in a second at most; left out: as many as can be."
    )
    ramp = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        max_length=MAX_STEPS,
        help_text="After so many letters in all it waits for their outcome.",
    )
    abort_ratio = serializers.FloatField(
        required=False, allow_null=True, help_text="It ends when more than this share failed again; null: never."
    )
    abort_min = serializers.IntegerField(required=False, help_text="So many must have failed before it ends.")
    max_replays = serializers.IntegerField(required=False, help_text="Letters replayed so often before are refused.")
    reason = serializers.CharField(required=False, allow_blank=True, default="")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = super().validate(attrs)
        names = ("rate_per_s", "abort_ratio", "abort_min", "max_replays")
        ramp = given.get("ramp", DEFAULT_RAMP if "filter" in given else ())
        settings = ReplaySettings(ramp=tuple(ramp), **{name: given[name] for name in names if name in given})
        return {**given, "settings": settings}


class TargetSerializer(serializers.Serializer[Any]):
    queue = serializers.UUIDField(source="queue.id")
    name = serializers.CharField(source="queue.name")
    partition = serializers.IntegerField(
        allow_null=True, help_text="Null where there are too many letters to look at each: all of the queue."
    )
    letters = serializers.IntegerField()


class RefusalSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(help_text="What these letters are or have.")
    count = serializers.IntegerField()
    examples = serializers.ListField(child=serializers.UUIDField())


class ReplayPlanSerializer(ChangePlanSerializer):
    """What a replay would do."""

    letters = serializers.IntegerField(help_text="How many would be sent.")
    targets = TargetSerializer(many=True, help_text="By partition; of very many queues those that get most.")
    other_queues = serializers.IntegerField(help_text="How many queues more get some.")
    refused = RefusalSerializer(many=True)
    duration_s = serializers.FloatField(allow_null=True, help_text="At the rate; null where nothing limits it.")
