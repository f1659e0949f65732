from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import DefaultRouter

from queueapi.rest.v1 import views
from queueapi.rest.v1.cluster import PartitionViewSet, ServiceViewSet
from queueapi.rest.v1.dead_letters import DeadLetterGroupViewSet, DeadLetterViewSet, QuarantinedLetterViewSet
from queueapi.rest.v1.queues import QueueViewSet
from queueapi.rest.v1.rebalances import RebalanceViewSet
from queueapi.rest.v1.replays import ReplayViewSet
from queueapi.rest.v1.routing import RoutingView

router = DefaultRouter(trailing_slash=False)
router.include_root_view = False
router.register("tenants", views.TenantViewSet)
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

urlpatterns = [
    path("", include(router.urls)),
    path("routing", RoutingView.as_view(), name="routing"),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(), name="api-docs"),
]
