"""Consumer groups on the wire, and where they may be set to."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from queueapi.change_plans import Change
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer, ChangeSerializer
from queueapi.selectors.groups import GroupFigures, GroupFilter
from queuecore.clock import SYSTEM_CLOCK
from queuecore.groups.resetting import AtOffset, AtTime, Earliest, Latest, ResetPlan, Shifted, Target

# Which field each target needs besides.
_NEEDS: Final = {
    "earliest": None, "latest": None, "last": "count", "offset": "offset", "time": "time", "ago": "ago",
    "shift": "count",
}  # fmt: skip
_FAR: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class GroupQuerySerializer(serializers.Serializer[Any]):
    queue = serializers.CharField(required=False, help_text="Its queue's id, or name in any case.")
    text = serializers.CharField(required=False, help_text="Part of its name, in any case.")
    active = serializers.BooleanField(required=False, help_text="Whether it has members.")

    def filter(self) -> GroupFilter:
        return GroupFilter(**self.validated_data)


class GroupQueueSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    tenant = serializers.UUIDField(source="tenant_id")


class ConsumerGroupSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    queue = GroupQueueSerializer(allow_null=True, help_text="The queue it reads, where it is one's.")
    active = serializers.BooleanField(source="is_active", help_text="Whether it has members.")
    member_count = serializers.SerializerMethodField()
    partition_count = serializers.SerializerMethodField(help_text="Those it has committed, or its members hold.")
    lag = serializers.IntegerField(allow_null=True, help_text="Messages behind the ends, of all partitions together.")

    def get_member_count(self, group: GroupFigures) -> int:
        return len(group.members)

    def get_partition_count(self, group: GroupFigures) -> int:
        return len(group.partitions)


class GroupPartitionSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField(source="place.topic")
    partition = serializers.IntegerField(source="place.partition", help_text="Inside the topic.")
    beginning = serializers.IntegerField(allow_null=True)
    end = serializers.IntegerField(allow_null=True)
    committed = serializers.IntegerField(allow_null=True, help_text="`null`: nothing yet.")
    lag = serializers.IntegerField(allow_null=True)
    member = serializers.CharField(allow_null=True, help_text="Who reads it now.")


class GroupMemberSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    partitions = serializers.ListField(child=serializers.CharField(), help_text="As `topic[partition]`.")


class OneConsumerGroupSerializer(ConsumerGroupSerializer):
    members = serializers.SerializerMethodField()
    partitions = GroupPartitionSerializer(many=True)

    @extend_schema_field(GroupMemberSerializer(many=True))
    def get_members(self, group: GroupFigures) -> list[dict[str, Any]]:
        return [
            {"id": member, "partitions": [str(place) for place in sorted(held)]}
            for member, held in sorted(group.members.items())
        ]


@extend_schema_serializer(many=False)
class ConsumerGroupPageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True, help_text="The next page.")
    results = ConsumerGroupSerializer(many=True)


class ResetSerializer(StrictSerializer):
    """Where the group goes on from, in which partitions. Without a topic: in all that it has committed."""

    to = serializers.ChoiceField(
        choices=list(_NEEDS),
        help_text="`earliest`; `latest`; `last`: `count` before the end; `offset`; `time`: the first message that is "
        "not older; `ago`: the same, so long before now; `shift`: `count` after what is committed, or before it.",
    )
    offset = serializers.IntegerField(required=False, min_value=0, max_value=_FAR)
    time = serializers.DateTimeField(required=False, help_text="With its zone.")
    ago = serializers.DurationField(required=False, min_value=timedelta(0), help_text="As `PT1H30M` or `01:30:00`.")
    count = serializers.IntegerField(required=False, min_value=-_FAR, max_value=_FAR)
    topic = serializers.CharField(required=False, help_text="Only this one, as the provider calls it.")
    partitions = serializers.ListField(
        child=serializers.IntegerField(min_value=0), required=False, min_length=1, max_length=10_000,
        help_text="Only these, numbers inside the topic.",
    )  # fmt: skip
    token = serializers.CharField(
        required=False,
        help_text="Of a plan: refused where what is done would not be what was shown. What `ago` means goes on: its "
        "plan is done by the plan's `time`, with `time` as `to`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        needed = _NEEDS[attrs["to"]]
        for name in ("offset", "time", "ago", "count"):
            if name == needed and name not in attrs:
                raise serializers.ValidationError({name: f"say it where `to` is {attrs['to']}"})
            if name != needed and name in attrs:
                raise serializers.ValidationError({name: f"leave it out where `to` is {attrs['to']}"})
        if attrs["to"] == "ago" and "token" in attrs:
            raise serializers.ValidationError(
                {"token": "it is of the time that was shown with it: send that as `time`, and `time` as `to`"}
            )
        if attrs["to"] == "last" and attrs["count"] < 0:
            raise serializers.ValidationError({"count": "use 0 or more where `to` is last"})
        return {**attrs, "target": _target(attrs)}


def _target(given: dict[str, Any]) -> Target:
    match given["to"]:
        case "earliest":
            return Earliest()
        case "latest":
            return Latest()
        case "last":
            return Latest(given["count"])
        case "offset":
            return AtOffset(given["offset"])
        case "shift":
            return Shifted(given["count"])
        case "ago":
            # Nothing is older than the clock's beginning, and a plan says which time was meant.
            return AtTime(max(0, SYSTEM_CLOCK.now_ms() - given["ago"] // _MILLISECOND))
        case _:
            return AtTime(_millis(given["time"]))


def _millis(time: datetime) -> int:
    return (time - _EPOCH) // _MILLISECOND


class ResetMoveSerializer(serializers.Serializer[Any]):
    """One partition, before and after. What is skipped or repeated is `null` where nothing was committed."""

    topic = serializers.CharField(source="place.topic")
    partition = serializers.IntegerField(source="place.partition", help_text="Inside the topic.")
    beginning = serializers.IntegerField(source="standing.beginning")
    end = serializers.IntegerField(source="standing.end")
    committed = serializers.IntegerField(source="standing.committed", allow_null=True)
    lag = serializers.IntegerField(source="standing.lag", allow_null=True)
    offset = serializers.IntegerField(help_text="Where the group goes on from.")
    skipped = serializers.IntegerField(allow_null=True, help_text="How many messages are never delivered.")
    repeated = serializers.IntegerField(allow_null=True, help_text="How many messages are delivered again.")
    changes = serializers.BooleanField()
    clamped = serializers.BooleanField(source="is_clamped", help_text="What was asked for is not stored.")


class ResetPlanSerializer(ChangePlanSerializer):
    """`changes` are those of the moves that move anything: from where each partition goes on."""

    summary = serializers.SerializerMethodField()  # type: ignore[assignment]
    changes = serializers.SerializerMethodField()  # type: ignore[assignment]
    warnings = serializers.SerializerMethodField()  # type: ignore[assignment]
    group = serializers.CharField()
    time = serializers.SerializerMethodField(help_text="What `time` or `ago` came to; null for all else.")
    token = serializers.CharField(help_text="The same for plans that mean the same.")
    moves = ResetMoveSerializer(many=True)

    def get_summary(self, plan: ResetPlan) -> str:
        moved = sum(move.changes for move in plan.moves)
        return f"{moved} of {len(plan.moves)} partitions go on from elsewhere"

    @extend_schema_field(ChangeSerializer(many=True))
    def get_changes(self, plan: ResetPlan) -> Any:
        changes = [
            Change(f"{plan.group} in {move.place}", move.standing.committed, move.offset)
            for move in plan.moves
            if move.changes
        ]
        return ChangeSerializer(changes, many=True).data

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_time(self, plan: ResetPlan) -> datetime | None:
        target = plan.target
        return _EPOCH + target.time_ms * _MILLISECOND if isinstance(target, AtTime) else None

    def get_warnings(self, plan: ResetPlan) -> list[str]:
        told = {
            "never delivered": sum(move.skipped or 0 for move in plan.moves),
            "delivered again": sum(move.repeated or 0 for move in plan.moves),
        }
        return [f"{number:,} message{'' if number == 1 else 's'}: {what}" for what, number in told.items() if number]
