from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import DefaultRouter

from queueapi.rest import security_schemes  # noqa: F401 tells the documentation
from queueapi.rest.v1 import views
from queueapi.rest.v1.audit import AuditViewSet
from queueapi.rest.v1.cluster import PartitionViewSet, ServiceViewSet
from queueapi.rest.v1.configuration import ConfigurationView
from queueapi.rest.v1.dead_letters import DeadLetterGroupViewSet, DeadLetterViewSet, QuarantinedLetterViewSet
from queueapi.rest.v1.groups import GroupViewSet
from queueapi.rest.v1.isolation import IsolationRequestViewSet
from queueapi.rest.v1.me import MeView, OwnPasswordView
from queueapi.rest.v1.message_types import MessageTypeViewSet
from queueapi.rest.v1.queues import QueueViewSet
from queueapi.rest.v1.rebalances import RebalanceViewSet
from queueapi.rest.v1.replays import ReplayViewSet
from queueapi.rest.v1.routing import RoutingView
from queueapi.rest.v1.tenant_profiles import TenantProfileViewSet
from queueapi.rest.v1.tenants import TenantViewSet
from queueapi.rest.v1.tokens import TokenViewSet
from queueapi.rest.v1.topics import TopicViewSet
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
router.register("lag", views.LagViewSet)
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
    path("routing", RoutingView.as_view(), name="routing"),
    path("version", VersionView.as_view(), name="version"),
    path("configuration", ConfigurationView.as_view(), name="configuration"),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(), name="api-docs"),
]
