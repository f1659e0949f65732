"""Every address of this server."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, include, path

from console.access import View, staff_only
from console.forms import SignInForm
from console.views import (
    audit,
    dead_letters,
    letter_decisions,
    operations,
    overview,
    partitions,
    queues,
    rebalance_plans,
    rebalances,
    services,
)
from queueapi.rest.health import health


def page(route: str, view: View, name: str) -> URLPattern:
    """A page of the console: whoever adds one cannot forget who may see it."""
    return path(route, staff_only(view), name=name)


sign_in = LoginView.as_view(
    template_name="login.html", authentication_form=SignInForm, redirect_authenticated_user=True
)

urlpatterns = [
    path("healthz", health, name="health"),
    path("api/v1/", include("queueapi.rest.v1.urls")),
    path("login/", sign_in, name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    page("", overview.show_overview, "overview"),
    page("queues/", queues.QueueList.as_view(), "queues"),
    page("queues/<uuid:pk>/", queues.show_queue, "queue"),
    page("queues/<uuid:pk>/pause/", queues.pause, "pause_queue"),
    page("queues/<uuid:pk>/pauses/<int:pause>/resume/", queues.resume, "resume_queue"),
    page("dead-letters/", dead_letters.LetterList.as_view(), "dead_letters"),
    page("dead-letters/replay/", letter_decisions.replay_selected, "replay_letters"),
    page("dead-letters/discard/", letter_decisions.discard_selected, "discard_letters"),
    page("dead-letters/restore/", letter_decisions.restore_selected, "restore_letters"),
    page("dead-letters/release/", letter_decisions.release_selected, "release_letters"),
    page("dead-letters/groups/<int:pk>/note/", dead_letters.write_group_note, "note_group"),
    page("dead-letters/<uuid:pk>/", dead_letters.show_letter, "dead_letter"),
    page("dead-letters/<uuid:pk>/replay/", dead_letters.replay_letter, "replay_letter"),
    page("dead-letters/<uuid:pk>/note/", dead_letters.write_note, "note_letter"),
    page("dead-letters/<uuid:pk>/payload/", dead_letters.download_payload, "letter_payload"),
    page("services/", services.ServiceList.as_view(), "services"),
    page("services/<str:pk>/drain/", services.drain, "drain_service"),
    page("services/<str:pk>/undrain/", services.undrain, "undrain_service"),
    page("partitions/", partitions.PartitionList.as_view(), "partitions"),
    page("rebalances/", rebalances.RebalanceList.as_view(), "rebalances"),
    page("rebalances/plan/", rebalance_plans.plan, "plan_rebalance"),
    page("rebalances/<uuid:pk>/", rebalances.show_rebalance, "rebalance"),
    page("rebalances/<uuid:pk>/cancel/", rebalances.cancel, "cancel_rebalance"),
    page("operations/", operations.OperationList.as_view(), "operations"),
    page("operations/<uuid:pk>/", operations.show_operation, "operation"),
    page("operations/<uuid:pk>/cancel/", operations.cancel, "cancel_operation"),
    page("operations/<uuid:pk>/pause/", operations.pause, "pause_operation"),
    page("operations/<uuid:pk>/resume/", operations.resume, "resume_operation"),
    page("audit/", audit.AuditList.as_view(), "audit"),
]
