"""The pipeline over REST: whether the figures of all the rest can be trusted, why not, and making them anew."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.pipeline import start_backfill
from queueapi.models import PipelineRun
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.v1.plan_serializers import RefusablePlanSerializer
from queueapi.rest.v1.queue_life import accepted
from queueapi.rest.v1.serializers import OperationSerializer
from queueapi.selectors.backfill_plans import plan_backfill
from queueapi.selectors.pipeline_standing import pipeline_state


class PipelineRunSerializer(serializers.ModelSerializer[PipelineRun]):
    class Meta:
        model = PipelineRun
        fields = [
            "query", "batch_id", "events", "unusable", "rows", "newest_event_at", "started_at", "finished_at",
        ]  # fmt: skip
        extra_kwargs = {
            "unusable": {"help_text": "Events that could not be read, and were passed over."},
            "rows": {"help_text": "Of summaries that it wrote."},
        }


class PipelineSerializer(serializers.Serializer[Any]):
    """Null is what has never happened."""

    as_of = serializers.DateTimeField(
        source="freshness.as_of", allow_null=True, help_text="The newest event that the figures are made of."
    )
    stale = serializers.BooleanField(
        source="freshness.is_stale", help_text="Whether that is too long ago for the figures to be relied on."
    )
    running = serializers.BooleanField(
        source="freshness.is_pipeline_running",
        help_text="Whether batches are still made. If so and the figures are stale, it lags, or samples are missing.",
    )
    ran_at = serializers.DateTimeField(source="standing.ran_at", allow_null=True, help_text="When it was last tried.")
    succeeded_at = serializers.DateTimeField(source="standing.succeeded_at", allow_null=True)
    took_s = serializers.FloatField(source="standing.took_s", allow_null=True)
    error = serializers.CharField(
        source="standing.error", allow_null=True, help_text="Why the last run failed; empty where it did not."
    )
    code = serializers.CharField(source="standing.code", allow_null=True, help_text="The error's.")
    failed_runs = serializers.IntegerField(
        source="standing.failed_runs", allow_null=True, help_text="How many failed, one after the other."
    )
    backlog_events = serializers.IntegerField(
        source="standing.backlog_events", allow_null=True, help_text="How many events waited when the last run ended."
    )
    runs = PipelineRunSerializer(many=True, help_text="The last batches, newest first.")


class BackfillSerializer(StrictSerializer):
    """Days by UTC, both included."""

    first = serializers.DateField(help_text="The first day.")
    last = serializers.DateField(required=False, help_text="The last day. Left out: the first one alone.")


class StoredDaySerializer(serializers.Serializer[Any]):
    day = serializers.DateField()
    events = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many are stored, by kind; those of which there are none left out.",
    )
    files = serializers.IntegerField(help_text="That hold them.")
    unreadable = serializers.IntegerField(help_text="Files that came to harm: what they held would be missing.")


class BackfillPlanSerializer(RefusablePlanSerializer):
    """What would be made anew."""

    days = StoredDaySerializer(
        many=True, help_text="One by one; empty where the events are in a data folder that this server does not share."
    )


_BACKFILLS: Final = [
    OpenApiExample("Three days", {"first": "2026-03-12", "last": "2026-03-14"}, request_only=True),
    OpenApiExample("One day", {"first": "2026-03-14"}, request_only=True),
]


class PipelineView(Conventional):
    access = Access(Resource.PIPELINE)
    has_etag = True

    @extend_schema(summary="How the pipeline is, and what it did last", responses=PipelineSerializer)
    def get(self, _: Request) -> Response:
        """It computes lag, usage and all other figures from what services report."""
        return Response(PipelineSerializer(pipeline_state()).data)


class BackfillsView(Conventional):
    access = Access(Resource.PIPELINE, changes=OPERATE)

    @extend_schema(
        summary="Make summaries of past days anew",
        request=BackfillSerializer,
        responses={202: OperationSerializer},
        examples=_BACKFILLS,
    )
    @plans_itself(BackfillPlanSerializer)
    def post(self, request: Request) -> Response:
        """From the events that are kept, a day after the other, between the scheduled runs; answers with the operation
        to follow, or with the plan. Refused for days whose events are kept no more, and while another one is under
        way."""
        given = BackfillSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        first = given.validated_data["first"]
        last = given.validated_data.get("last", first)
        if is_dry_run(request):
            return Response(BackfillPlanSerializer(plan_backfill(first, last)).data)
        return accepted(start_backfill(actor_of(request), first, last))
