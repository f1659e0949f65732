"""Every address of this server."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, include, path

from console.access import Need, View, guarded
from console.forms import SignInForm
from console.views import (
    audit,
    dead_letters,
    letter_decisions,
    operations,
    overview,
    partitions,
    queue_life,
    queues,
    rebalance_plans,
    rebalances,
    services,
    tenant_profiles,
    tenants,
)
from queueapi.access.table import WRITE, Resource
from queueapi.rest.health import health


def page(route: str, view: View, name: str, resource: Resource, changes: Need | None = None) -> URLPattern:
    """A page of the console: whoever adds one cannot forget who may see it, and change anything there."""
    return path(route, guarded(view, resource, changes), name=name)


sign_in = LoginView.as_view(
    template_name="login.html", authentication_form=SignInForm, redirect_authenticated_user=True
)

urlpatterns = [
    path("healthz", health, name="health"),
    path("api/v1/", include("queueapi.rest.v1.urls")),
    path("login/", sign_in, name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    page("", overview.show_overview, "overview", Resource.QUEUES),
    page("queues/", queues.QueueList.as_view(), "queues", Resource.QUEUES),
    page("queues/<uuid:pk>/", queues.show_queue, "queue", Resource.QUEUES, changes=(WRITE, Resource.MESSAGES)),
    page("queues/<uuid:pk>/drain/", queue_life.drain, "drain_queue", Resource.QUEUES),
    page("queues/<uuid:pk>/activate/", queue_life.activate, "activate_queue", Resource.QUEUES),
    page("queues/<uuid:pk>/delete/", queue_life.delete, "delete_queue", Resource.QUEUES, (WRITE, Resource.QUEUES)),
    page("queues/<uuid:pk>/pause/", queues.pause, "pause_queue", Resource.QUEUES),
    page("queues/<uuid:pk>/pauses/<int:pause>/resume/", queues.resume, "resume_queue", Resource.QUEUES),
    page("tenants/", tenants.TenantList.as_view(), "tenants", Resource.TENANTS),
    page("tenants/new/", tenants.create, "create_tenant", Resource.TENANTS, (WRITE, Resource.TENANTS)),
    page("tenants/<uuid:pk>/", tenants.show_tenant, "tenant", Resource.TENANTS),
    page("tenants/<uuid:pk>/change/", tenants.change, "change_tenant", Resource.TENANTS, (WRITE, Resource.TENANTS)),
    page("tenants/<uuid:pk>/suspend/", tenants.suspend, "suspend_tenant", Resource.TENANTS),
    page("tenants/<uuid:pk>/resume/", tenants.resume, "resume_tenant", Resource.TENANTS),
    page("tenants/<uuid:pk>/delete/", tenants.delete, "delete_tenant", Resource.TENANTS, (WRITE, Resource.TENANTS)),
    page("tenants/profiles/", tenant_profiles.ProfileList.as_view(), "tenant_profiles", Resource.TENANT_PROFILES),
    page(
        "tenants/profiles/new/",
        tenant_profiles.create,
        "create_tenant_profile",
        Resource.TENANT_PROFILES,
        (WRITE, Resource.TENANT_PROFILES),
    ),
    page("tenants/profiles/<uuid:pk>/", tenant_profiles.show_profile, "tenant_profile", Resource.TENANT_PROFILES),
    page(
        "tenants/profiles/<uuid:pk>/change/",
        tenant_profiles.change,
        "change_tenant_profile",
        Resource.TENANT_PROFILES,
        (WRITE, Resource.TENANT_PROFILES),
    ),
    page(
        "tenants/profiles/<uuid:pk>/delete/",
        tenant_profiles.delete,
        "delete_tenant_profile",
        Resource.TENANT_PROFILES,
        (WRITE, Resource.TENANT_PROFILES),
    ),
    page("dead-letters/", dead_letters.LetterList.as_view(), "dead_letters", Resource.DEAD_LETTERS),
    page("dead-letters/replay/", letter_decisions.replay_selected, "replay_letters", Resource.DEAD_LETTERS),
    page("dead-letters/discard/", letter_decisions.discard_selected, "discard_letters", Resource.DEAD_LETTERS),
    page("dead-letters/restore/", letter_decisions.restore_selected, "restore_letters", Resource.DEAD_LETTERS),
    page("dead-letters/release/", letter_decisions.release_selected, "release_letters", Resource.DEAD_LETTERS),
    page(
        "dead-letters/groups/<int:pk>/note/", dead_letters.write_group_note, "note_group", Resource.DEAD_LETTER_GROUPS
    ),
    page("dead-letters/<uuid:pk>/", dead_letters.show_letter, "dead_letter", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/replay/", dead_letters.replay_letter, "replay_letter", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/note/", dead_letters.write_note, "note_letter", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/payload/", dead_letters.download_payload, "letter_payload", Resource.DEAD_LETTERS),
    page("services/", services.ServiceList.as_view(), "services", Resource.SERVICES),
    page("services/<str:pk>/drain/", services.drain, "drain_service", Resource.SERVICES),
    page("services/<str:pk>/undrain/", services.undrain, "undrain_service", Resource.SERVICES),
    page("partitions/", partitions.PartitionList.as_view(), "partitions", Resource.PARTITIONS),
    page("rebalances/", rebalances.RebalanceList.as_view(), "rebalances", Resource.REBALANCES),
    page("rebalances/plan/", rebalance_plans.plan, "plan_rebalance", Resource.REBALANCES),
    page("rebalances/<uuid:pk>/", rebalances.show_rebalance, "rebalance", Resource.REBALANCES),
    page("rebalances/<uuid:pk>/cancel/", rebalances.cancel, "cancel_rebalance", Resource.REBALANCES),
    page("operations/", operations.OperationList.as_view(), "operations", Resource.OPERATIONS),
    page("operations/<uuid:pk>/", operations.show_operation, "operation", Resource.OPERATIONS),
    page("operations/<uuid:pk>/cancel/", operations.cancel, "cancel_operation", Resource.OPERATIONS),
    page("operations/<uuid:pk>/pause/", operations.pause, "pause_operation", Resource.OPERATIONS),
    page("operations/<uuid:pk>/resume/", operations.resume, "resume_operation", Resource.OPERATIONS),
    page("audit/", audit.AuditList.as_view(), "audit", Resource.AUDIT),
]
