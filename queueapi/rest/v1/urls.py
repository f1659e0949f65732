from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import DefaultRouter

from queueapi.rest import security_schemes  # noqa: F401 tells the documentation
from queueapi.rest.v1 import views
from queueapi.rest.v1.alert_channels import AlertChannelViewSet
from queueapi.rest.v1.alert_rules import AlertRuleViewSet
from queueapi.rest.v1.alerts import AlertViewSet, SilenceViewSet
from queueapi.rest.v1.audit import AuditViewSet
from queueapi.rest.v1.cluster import PartitionViewSet, ServiceViewSet
from queueapi.rest.v1.configuration import ConfigurationView
from queueapi.rest.v1.dead_letters import DeadLetterGroupViewSet, DeadLetterViewSet, QuarantinedLetterViewSet
from queueapi.rest.v1.groups import GroupViewSet
from queueapi.rest.v1.health import HealthView
from queueapi.rest.v1.isolation import IsolationRequestViewSet
from queueapi.rest.v1.lag import LagViewSet, QueueLagViewSet
from queueapi.rest.v1.me import MeView, OwnPasswordView
from queueapi.rest.v1.message_types import MessageTypeViewSet
from queueapi.rest.v1.pending_requests import PendingRequestViewSet, RequestHistoryViewSet
from queueapi.rest.v1.pipeline import BackfillsView, PipelineView
from queueapi.rest.v1.queues import QueueViewSet
from queueapi.rest.v1.rebalances import RebalanceViewSet
from queueapi.rest.v1.replays import ReplayViewSet
from queueapi.rest.v1.routing import RoutingView
from queueapi.rest.v1.tenant_profiles import TenantProfileViewSet
from queueapi.rest.v1.tenants import TenantViewSet
from queueapi.rest.v1.tokens import TokenViewSet
from queueapi.rest.v1.topics import TopicViewSet
from queueapi.rest.v1.usage import UsageTotalViewSet, UsageViewSet
from queueapi.rest.v1.users import UserViewSet
from queueapi.rest.v1.version import VersionView

router = DefaultRouter(trailing_slash=False)
router.include_root_view = False
router.register("tenants", TenantViewSet)
router.register("tenant-profiles", TenantProfileViewSet)
router.register("isolation-requests", IsolationRequestViewSet)
router.register("queues", QueueViewSet)
# Before the letters: what follows theirs is an id.
router.register("dead-letters/quarantined", QuarantinedLetterViewSet)
router.register("dead-letters", DeadLetterViewSet)
router.register("dead-letter-groups", DeadLetterGroupViewSet)
router.register("replays", ReplayViewSet)
router.register("operations", views.OperationViewSet)
# Before what has ids, as above.
router.register("lag/queues", QueueLagViewSet, basename="queuelag")
router.register("lag", LagViewSet)
router.register("pending-requests/history", RequestHistoryViewSet)
router.register("pending-requests", PendingRequestViewSet)
router.register("usage/totals", UsageTotalViewSet, basename="usagetotal")
router.register("usage", UsageViewSet)
router.register("alerts", AlertViewSet)
router.register("alert-rules", AlertRuleViewSet)
router.register("alert-channels", AlertChannelViewSet)
router.register("silences", SilenceViewSet)
router.register("services", ServiceViewSet)
router.register("partitions", PartitionViewSet)
router.register("rebalances", RebalanceViewSet)
router.register("audit", AuditViewSet)
router.register("tokens", TokenViewSet)
router.register("users", UserViewSet)
router.register("topics", TopicViewSet, basename="topic")
router.register("groups", GroupViewSet, basename="group")
router.register("message-types", MessageTypeViewSet)

urlpatterns = [
    path("", include(router.urls)),
    path("me", MeView.as_view(), name="me"),
    path("me/password", OwnPasswordView.as_view(), name="own-password"),
    path("pipeline", PipelineView.as_view(), name="pipeline"),
    path("pipeline/back-fills", BackfillsView.as_view(), name="pipeline-back-fills"),
    path("routing", RoutingView.as_view(), name="routing"),
    path("health", HealthView.as_view(), name="health"),
    path("version", VersionView.as_view(), name="version"),
    path("configuration", ConfigurationView.as_view(), name="configuration"),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(), name="api-docs"),
]
