"""Alerts over REST: look, acknowledge, silence; and the silences themselves."""

from typing import Any, Final

from django.db.models import QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import OPERATE, Resource
from queueapi.actions.alerts import acknowledge_alert
from queueapi.actions.silences import create_silence, end_silence, silence_alert
from queueapi.choices import AlertMetric, AlertSeverity, AlertState
from queueapi.models import Alert, Silence
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.filters import ByIdFilterSet, TrueOrFalseFilter
from queueapi.rest.permissions import Access, Need
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import alert_serializers as wire
from queueapi.rest.v1.problem_schema import refusals
from queueapi.selectors.alerts import alert_counts

_OVER: Final = refusals({409: "`already_final`: it is over."})


class AlertFilter(ByIdFilterSet):
    state = filters.ChoiceFilter(choices=AlertState)
    severity = filters.ChoiceFilter(choices=AlertSeverity)
    metric = filters.ChoiceFilter(choices=AlertMetric)
    is_open = TrueOrFalseFilter(field_name="resolved_at", lookup_expr="isnull", label="Whether it is not over yet.")

    class Meta:
        model = Alert
        fields = ["state", "severity", "metric", "rule", "tenant", "queue", "subject_key"]


class AlertViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[Alert]):
    """The newest first. A tenant's people see those of their tenant's own queues."""

    access = Access(Resource.ALERTS, changes=OPERATE, silence=Need(OPERATE, Resource.SILENCES))
    summaries = {
        "list": "List alerts",
        "retrieve": "Show an alert",
        "counts": "Count alerts",
    }
    queryset = Alert.objects.all()
    pagination_class = pagination.NewestFiredFirst
    filterset_class = AlertFilter
    also_things = ("counts",)

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return wire.AlertSerializer if self.action == "list" else wire.OneAlertSerializer

    @extend_schema(responses=wire.AlertCountsSerializer, filters=False)
    @action(detail=False, pagination_class=None, filterset_class=None)
    def counts(self, *_: Any, **__: Any) -> Response:
        """How many there are in each state."""
        return Response(wire.AlertCountsSerializer(alert_counts(self.get_queryset())).data)

    @extend_schema(
        summary="Acknowledge an alert",
        request=wire.AcknowledgementSerializer,
        responses={200: wire.OneAlertSerializer, **_OVER},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def acknowledge(self, request: Request, **_: Any) -> Response:
        """Say that you see to it: it does not escalate. Acknowledged already: nothing changes."""
        alert, given = self.get_object(), _given(wire.AcknowledgementSerializer, request)
        return Response(self.get_serializer(acknowledge_alert(actor_of(request), alert, given["note"])).data)

    @extend_schema(
        summary="Silence an alert",
        request=wire.AlertSilenceSerializer,
        responses={201: wire.SilenceSerializer, **_OVER},
    )
    @action(detail=True, methods=["post"])
    @rehearsed
    def silence(self, request: Request, **_: Any) -> Response:
        """Let nobody be told of this rule for this subject until then; answers with the silence."""
        alert, given = self.get_object(), _given(wire.AlertSilenceSerializer, request)
        made = silence_alert(actor_of(request), alert, **given)
        return Response(wire.SilenceSerializer(made).data, status=status.HTTP_201_CREATED)


class SilenceFilter(ByIdFilterSet):
    active = TrueOrFalseFilter(method="by_active", label="Whether it still holds.")

    class Meta:
        model = Silence
        fields = ["rule", "tenant", "queue", "subject_key"]

    def by_active(self, rows: QuerySet[Any], _name: str, value: bool) -> QuerySet[Any]:
        now = timezone.now()
        return rows.filter(until__gt=now) if value else rows.filter(until__lte=now)


class SilenceViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[Silence]):
    """The newest first."""

    access = Access(Resource.SILENCES, changes=OPERATE)
    summaries = {"list": "List silences", "retrieve": "Show a silence"}
    queryset = Silence.objects.all()
    serializer_class = wire.SilenceSerializer
    filterset_class = SilenceFilter

    @extend_schema(
        summary="Create a silence", request=wire.SilenceCreationSerializer, responses={201: wire.SilenceSerializer}
    )
    @rehearsed
    def create(self, request: Request) -> Response:
        """Let nobody be told of alerts that match, for a while."""
        made = create_silence(actor_of(request), **_given(wire.SilenceCreationSerializer, request))
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="End a silence", request=None, responses={204: None})
    @rehearsed
    def destroy(self, request: Request, **_: Any) -> Response:
        """What it kept quiet and is still so is told with the next evaluation."""
        end_silence(actor_of(request), self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _given(kind: type[serializers.BaseSerializer[Any]], request: Request) -> dict[str, Any]:
    given = kind(data=request.data, context={"request": request})
    given.is_valid(raise_exception=True)
    checked: dict[str, Any] = given.validated_data
    return checked
