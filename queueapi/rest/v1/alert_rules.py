"""Alert rules over REST: look, create, change, delete."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.actions.alert_rules import CHANGEABLE, CHANNEL_FIELDS, RULE_FIELDS, change_rule, create_rule, delete_rule
from queueapi.actions.row_checks import check_names
from queueapi.choices import AlertMetric, AlertSeverity
from queueapi.models import AlertRule
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.filters import ByIdFilterSet
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import OnlyVisible
from queueapi.rest.v1 import alert_serializers as wire
from queueapi.rest.v1.problem_schema import refusals

_EXAMPLE = OpenApiExample(
    "A queue that may wait longer",
    {
        "name": "Reports are far behind",
        "metric": "lag_seconds",
        "queue": "784f394c-42b6-435a-983c-b7beff2784f9",
        "threshold": 3600,
        "resolve_at": 1800,
        "for_s": 300,
        "severity": "warning",
    },
    request_only=True,
)


class RuleFilter(ByIdFilterSet):
    metric = filters.ChoiceFilter(choices=AlertMetric)
    severity = filters.ChoiceFilter(choices=AlertSeverity)

    class Meta:
        model = AlertRule
        fields = ["metric", "severity", "enabled", "tenant", "queue", "request_topic"]


class AlertRuleViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[AlertRule]):
    """By name. A tenant's administrators see those for their tenant and its queues."""

    access = Access(Resource.ALERT_RULES)
    summaries = {"list": "List alert rules", "retrieve": "Show an alert rule"}
    queryset = AlertRule.objects.prefetch_related("channels", "escalation_channels")
    serializer_class = wire.RuleSerializer
    pagination_class = pagination.ByName
    filterset_class = RuleFilter

    @extend_schema(
        summary="Create an alert rule",
        request=wire.RuleCreationSerializer,
        responses={201: wire.RuleSerializer},
        examples=[_EXAMPLE],
    )
    @rehearsed
    def create(self, request: Request) -> Response:
        """It holds from the next evaluation on."""
        given = self._given(wire.RuleCreationSerializer, request, (*RULE_FIELDS, *CHANNEL_FIELDS))
        rule = create_rule(actor_of(request), **given)
        return Response(self._told(rule), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change an alert rule", request=wire.RuleChangeSerializer, responses={200: wire.RuleSerializer}
    )
    @rehearsed
    def partial_update(self, request: Request, **_: Any) -> Response:
        """What it is about stays: metric, tenant, queue and request topic."""
        rule = self.get_object()
        kind, known = wire.RuleChangeSerializer, (*CHANGEABLE, *CHANNEL_FIELDS)
        given = self._given(kind, request, known, instance=rule, partial=True)
        return Response(self._told(change_rule(actor_of(request), rule, **given)))

    @extend_schema(
        summary="Delete an alert rule",
        request=None,
        responses={204: None, **refusals({409: "`not_changeable`: it comes with the system."})},
    )
    @rehearsed
    def destroy(self, request: Request, **_: Any) -> Response:
        """Its open alerts resolve. One that comes with the system is switched off instead, with `enabled`."""
        delete_rule(actor_of(request), self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _given(
        self,
        kind: type[serializers.BaseSerializer[Any]],
        request: Request,
        known: tuple[str, ...],
        **options: Any,
    ) -> dict[str, Any]:
        given = kind(data=request.data, context=self.get_serializer_context(), **options)
        given.is_valid(raise_exception=True)
        check_names("rule", request.data, known)
        fields: dict[str, Any] = given.validated_data
        return fields

    def _told(self, rule: AlertRule) -> Any:
        return self.get_serializer(AlertRule.objects.get(pk=rule.pk)).data
