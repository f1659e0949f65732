"""Histories over REST: from when to when, in stretches of which length, and what was in each."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request

from queueapi.selectors.histories import MOST_POINTS, Resolution, fitting_resolution

_FROM: Final = "Then or later: a time with its zone. The stretch that it is in is told whole."


@dataclass(frozen=True, slots=True)
class AskedTime:
    """From when, until before when, and in what stretches."""

    begin: datetime
    end: datetime
    resolution: Resolution

    def told(self, rows: QuerySet[Any]) -> dict[str, Any]:
        """For a HistorySerializer: what of these rows is of that time."""
        points = rows.filter(at__gte=self.begin, at__lt=self.end)
        return {"resolution": self.resolution, "from": self.begin, "to": self.end, "points": points}


class TimeQuerySerializer(serializers.Serializer[Any]):
    """Of a history whose stretches are all of one length."""

    stretches: ClassVar = Resolution.MINUTE
    usual: ClassVar = timedelta(hours=1)

    to = serializers.DateTimeField(required=False, help_text="Before then: a time with its zone. Left out: now.")

    def get_fields(self) -> dict[str, Any]:
        # A field cannot be declared by this name: it is a word of Python's.
        begin = serializers.DateTimeField(required=False, help_text=f"{_FROM} Left out: {_spoken(self.usual)} before.")
        return {"from": begin, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        end = attrs.get("to") or timezone.now()
        try:
            begin = attrs.get("from") or end - self.usual
        except OverflowError:
            raise serializers.ValidationError({"to": f"there is no time {_spoken(self.usual)} before it"}) from None
        if begin >= end:
            raise serializers.ValidationError({"from": "this is not before `to`; begin earlier, or end later"})
        resolution = self._resolution(attrs, end - begin)
        if end - begin > resolution.longest:
            raise serializers.ValidationError(
                {
                    "from": f"one answer has up to {MOST_POINTS:,} points, one for each {resolution}; begin later, or "
                    "end earlier and ask again for the rest"
                }
            )
        return {"asked": AskedTime(resolution.begin(begin.astimezone(UTC)), end.astimezone(UTC), resolution)}

    def _resolution(self, attrs: dict[str, Any], length: timedelta) -> Resolution:  # noqa: ARG002
        return self.stretches


class ResolutionQuerySerializer(TimeQuerySerializer):
    """Of one that is kept in stretches of several lengths."""

    resolution = serializers.ChoiceField(
        choices=[(one.value, one.value) for one in Resolution],
        required=False,
        help_text="How long a stretch is. Left out: a minute up to six hours, an hour up to two weeks, then a day.",
    )

    def _resolution(self, attrs: dict[str, Any], length: timedelta) -> Resolution:
        return Resolution(attrs.get("resolution") or fitting_resolution(length))


class HourQuerySerializer(TimeQuerySerializer):
    stretches = Resolution.HOUR
    usual = timedelta(days=7)


class HistorySerializer(serializers.Serializer[Any]):
    """What a history looks like; whoever inherits it says what its `points` are, oldest first."""

    resolution = serializers.ChoiceField(
        choices=[(one.value, one.value) for one in Resolution], help_text="How long the stretch of each point is."
    )
    to = serializers.DateTimeField()

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": serializers.DateTimeField()}


def asked_time(request: Request, query: type[TimeQuerySerializer]) -> AskedTime:
    """ValidationError where it makes no sense, or would be too much for one answer."""
    asked = query(data=request.query_params.dict())
    asked.is_valid(raise_exception=True)
    found: AskedTime = asked.validated_data["asked"]
    return found


def _spoken(length: timedelta) -> str:
    return f"{length.days} days" if length.days else "an hour"
