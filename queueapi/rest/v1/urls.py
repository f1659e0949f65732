from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import DefaultRouter

from queueapi.rest.v1 import views

router = DefaultRouter(trailing_slash=False)
router.include_root_view = False
router.register("tenants", views.TenantViewSet)
router.register("queues", views.QueueViewSet)
router.register("dead-letters", views.DeadLetterViewSet)
router.register("operations", views.OperationViewSet)
router.register("lag", views.LagViewSet)
router.register("services", views.ServiceViewSet)

urlpatterns = [
    path("", include(router.urls)),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(), name="api-docs"),
]
