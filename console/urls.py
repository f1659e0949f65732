"""Every address of this server."""

from typing import Final

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, include, path

from console.access import Need, View, guarded
from console.forms import SignInForm
from console.own_pages import OWN
from console.views import (
    alert_channels,
    alert_rules,
    alerts,
    audit,
    dead_letters,
    isolation_asking,
    isolation_decisions,
    isolation_requests,
    ledger,
    letter_decisions,
    letter_edits,
    letter_groups,
    operations,
    overview,
    own_password,
    partition_maps,
    partitions,
    pending_requests,
    pipeline,
    queue_configuration,
    queue_editing,
    queue_groups,
    queue_heat,
    queue_life,
    queue_list,
    queue_messages,
    queue_partitions,
    queue_pauses,
    queues,
    rebalance_plans,
    rebalances,
    searching,
    services,
    silences,
    tenant_profiles,
    tenants,
    tokens,
    usage,
    users,
)
from queueapi.access.table import OPERATE, READ, WRITE, Resource
from queueapi.rest.health import health
from queueapi.rest.metrics import MetricsView

# Of each page by its name: what whoever sees it must be allowed, and what whoever changes anything there.
NEEDS: Final[dict[str, tuple[Need, Need]]] = {}


def page(route: str, view: View, name: str, resource: Resource, changes: Need | None = None) -> URLPattern:
    """A page of the console: whoever adds one cannot forget who may see it, and change anything there. What a tenant's
    people see of it, `OWN` says."""
    NEEDS[name] = (READ, resource), changes or (OPERATE, resource)
    return path(route, guarded(view, resource, changes, OWN.get(name)), name=name)


WRITE_RULES = (WRITE, Resource.ALERT_RULES)
WRITE_CHANNELS = (WRITE, Resource.ALERT_CHANNELS)
ISOLATION = Resource.ISOLATION_REQUESTS
DECIDE = (WRITE, ISOLATION)

# Whoever has a role may see that much: their own password is everybody's to change.
OF_EVERYBODY = (READ, Resource.QUEUES)

sign_in = LoginView.as_view(
    template_name="login.html", authentication_form=SignInForm, redirect_authenticated_user=True
)

urlpatterns = [
    path("healthz", health, name="health"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("api/v1/", include("queueapi.rest.v1.urls")),
    path("login/", sign_in, name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    page("", overview.show_overview, "overview", Resource.QUEUES),
    page("password/", own_password.change, "own_password", Resource.QUEUES, OF_EVERYBODY),
    page("search/", searching.show_search, "search", Resource.QUEUES),
    page("queues/", queue_list.QueueList.as_view(), "queues", Resource.QUEUES),
    page("queues/export.csv", queue_list.export_queues, "export_queues", Resource.QUEUES),
    page("queues/pause/", queue_pauses.pause_selected, "pause_queues", Resource.QUEUES),
    page("queues/resume/", queue_pauses.resume_selected, "resume_queues", Resource.QUEUES),
    page("queues/new/", queue_editing.create, "create_queue", Resource.QUEUES, (WRITE, Resource.QUEUES)),
    page("queues/explained/strategies/", queue_editing.explain, "explain_strategies", Resource.QUEUES),
    page(
        "queues/explained/handler/",
        queue_editing.explain_options,
        "explain_handler",
        Resource.QUEUES,
        (WRITE, Resource.QUEUES),
    ),
    page("queues/<uuid:pk>/", queues.show_queue, "queue", Resource.QUEUES),
    page("queues/<uuid:pk>/charts/", queues.show_charts, "queue_charts", Resource.QUEUES),
    page("queues/<uuid:pk>/consumers/", queues.show_consumers, "queue_consumers", Resource.QUEUES),
    page(
        "queues/<uuid:pk>/partitions/",
        queue_partitions.QueuePartitionList.as_view(),
        "queue_partitions",
        Resource.QUEUES,
    ),
    page(
        "queues/<uuid:pk>/messages/",
        queue_messages.show_messages,
        "queue_messages",
        Resource.MESSAGES,
        (WRITE, Resource.MESSAGES),
    ),
    page("queues/<uuid:pk>/groups/", queue_groups.show_groups, "queue_groups", Resource.GROUPS),
    page("queues/<uuid:pk>/groups/<str:group>/offsets/", queue_groups.reset, "reset_offsets", Resource.GROUPS),
    page(
        "queues/<uuid:pk>/configuration/",
        queue_configuration.show_configuration,
        "queue_configuration",
        Resource.QUEUES,
    ),
    page("queues/<uuid:pk>/change/", queue_editing.change, "change_queue", Resource.QUEUES, (WRITE, Resource.QUEUES)),
    page("queues/<uuid:pk>/heat/", queue_heat.show_heat, "queue_heat", Resource.QUEUES),
    page("queues/<uuid:pk>/resize/", queue_life.resize, "resize_queue", Resource.QUEUES, (WRITE, Resource.QUEUES)),
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
    page("tenants/<uuid:pk>/isolate/", isolation_asking.ask, "request_isolation", ISOLATION),
    page("tenants/<uuid:pk>/isolate/preview/", isolation_asking.preview, "preview_isolation", ISOLATION),
    page("isolation-requests/", isolation_requests.IsolationList.as_view(), "isolation_requests", ISOLATION),
    page("isolation-requests/<uuid:pk>/", isolation_requests.show_request, "isolation_request", ISOLATION),
    page("isolation-requests/<uuid:pk>/decision/", isolation_decisions.show_decision, "isolation_decision", ISOLATION),
    page("isolation-requests/<uuid:pk>/change/", isolation_asking.change, "change_isolation", ISOLATION),
    page("isolation-requests/<uuid:pk>/comment/", isolation_requests.comment, "comment_isolation", ISOLATION),
    page("isolation-requests/<uuid:pk>/withdraw/", isolation_decisions.withdraw, "withdraw_isolation", ISOLATION),
    page("isolation-requests/<uuid:pk>/approve/", isolation_decisions.approve, "approve_isolation", ISOLATION, DECIDE),
    page("isolation-requests/<uuid:pk>/refuse/", isolation_decisions.refuse, "refuse_isolation", ISOLATION, DECIDE),
    page("isolation-requests/<uuid:pk>/retry/", isolation_decisions.retry, "retry_isolation", ISOLATION, DECIDE),
    page("isolation-requests/<uuid:pk>/retire/", isolation_decisions.retire, "retire_isolation", ISOLATION, DECIDE),
    page("usage/", usage.UsageList.as_view(), "usage", Resource.USAGE),
    page("dead-letters/", dead_letters.LetterList.as_view(), "dead_letters", Resource.DEAD_LETTERS),
    page("dead-letters/replay/", letter_decisions.replay_selected, "replay_letters", Resource.DEAD_LETTERS),
    page("dead-letters/discard/", letter_decisions.discard_selected, "discard_letters", Resource.DEAD_LETTERS),
    page("dead-letters/restore/", letter_decisions.restore_selected, "restore_letters", Resource.DEAD_LETTERS),
    page("dead-letters/release/", letter_decisions.release_selected, "release_letters", Resource.DEAD_LETTERS),
    page(
        "dead-letters/groups/<int:pk>/note/", dead_letters.write_group_note, "note_group", Resource.DEAD_LETTER_GROUPS
    ),
    page("dead-letters/groups/", letter_groups.GroupList.as_view(), "dead_letter_groups", Resource.DEAD_LETTER_GROUPS),
    page("dead-letters/ledger/", ledger.LedgerList.as_view(), "ledger", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/edit/", letter_edits.edit, "edit_letter", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/original/", letter_edits.revert, "revert_letter", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/", dead_letters.show_letter, "dead_letter", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/note/", dead_letters.write_note, "note_letter", Resource.DEAD_LETTERS),
    page("dead-letters/<uuid:pk>/payload/", dead_letters.download_payload, "letter_payload", Resource.DEAD_LETTERS),
    page(
        "pending-requests/",
        pending_requests.PendingRequestList.as_view(),
        "pending_requests",
        Resource.PENDING_REQUESTS,
    ),
    page("services/", services.ServiceList.as_view(), "services", Resource.SERVICES),
    page("services/<str:pk>/drain/", services.drain, "drain_service", Resource.SERVICES),
    page("services/<str:pk>/undrain/", services.undrain, "undrain_service", Resource.SERVICES),
    page("partitions/", partitions.PartitionList.as_view(), "partitions", Resource.PARTITIONS),
    page("partitions/map/", partition_maps.PartitionMapPage.as_view(), "partition_map", Resource.PARTITIONS),
    page("rebalances/", rebalances.RebalanceList.as_view(), "rebalances", Resource.REBALANCES),
    page("rebalances/plan/", rebalance_plans.plan, "plan_rebalance", Resource.REBALANCES),
    page("rebalances/<uuid:pk>/", rebalances.show_rebalance, "rebalance", Resource.REBALANCES),
    page("rebalances/<uuid:pk>/cancel/", rebalances.cancel, "cancel_rebalance", Resource.REBALANCES),
    page("operations/", operations.OperationList.as_view(), "operations", Resource.OPERATIONS),
    page("operations/<uuid:pk>/", operations.show_operation, "operation", Resource.OPERATIONS),
    page("operations/<uuid:pk>/cancel/", operations.cancel, "cancel_operation", Resource.OPERATIONS),
    page("operations/<uuid:pk>/pause/", operations.pause, "pause_operation", Resource.OPERATIONS),
    page("operations/<uuid:pk>/resume/", operations.resume, "resume_operation", Resource.OPERATIONS),
    page("pipeline/", pipeline.show_pipeline, "pipeline", Resource.PIPELINE),
    page("pipeline/back-fill/", pipeline.backfill, "backfill", Resource.PIPELINE),
    page("alerts/", alerts.AlertList.as_view(), "alerts", Resource.ALERTS),
    page("alerts/<uuid:pk>/", alerts.show_alert, "alert", Resource.ALERTS),
    page("alerts/<uuid:pk>/acknowledge/", alerts.acknowledge, "acknowledge_alert", Resource.ALERTS),
    page("alerts/<uuid:pk>/silence/", alerts.silence, "silence_alert", Resource.ALERTS, (OPERATE, Resource.SILENCES)),
    page("alert-silences/", silences.SilenceList.as_view(), "silences", Resource.SILENCES),
    page("alert-silences/new/", silences.create, "create_silence", Resource.SILENCES),
    page("alert-silences/<uuid:pk>/end/", silences.end, "end_silence", Resource.SILENCES),
    page("alert-rules/", alert_rules.RuleList.as_view(), "alert_rules", Resource.ALERT_RULES),
    page("alert-rules/new/", alert_rules.create, "create_alert_rule", Resource.ALERT_RULES, WRITE_RULES),
    page("alert-rules/<uuid:pk>/", alert_rules.show_rule, "alert_rule", Resource.ALERT_RULES, WRITE_RULES),
    page("alert-rules/<uuid:pk>/measures/", alert_rules.show_measures, "alert_rule_measures", Resource.ALERT_RULES),
    page("alert-rules/<uuid:pk>/change/", alert_rules.change, "change_alert_rule", Resource.ALERT_RULES, WRITE_RULES),
    page("alert-rules/<uuid:pk>/switch/", alert_rules.switch, "switch_alert_rule", Resource.ALERT_RULES, WRITE_RULES),
    page("alert-rules/<uuid:pk>/delete/", alert_rules.delete, "delete_alert_rule", Resource.ALERT_RULES, WRITE_RULES),
    page("alert-channels/", alert_channels.ChannelList.as_view(), "alert_channels", Resource.ALERT_CHANNELS),
    page("alert-channels/new/", alert_channels.create, "create_alert_channel", Resource.ALERT_CHANNELS, WRITE_CHANNELS),
    page("alert-channels/<uuid:pk>/", alert_channels.show_channel, "alert_channel", Resource.ALERT_CHANNELS),
    page("alert-channels/<uuid:pk>/test/", alert_channels.test, "test_alert_channel", Resource.ALERT_CHANNELS),
    page(
        "alert-channels/<uuid:pk>/change/",
        alert_channels.change,
        "change_alert_channel",
        Resource.ALERT_CHANNELS,
        WRITE_CHANNELS,
    ),
    page(
        "alert-channels/<uuid:pk>/delete/",
        alert_channels.delete,
        "delete_alert_channel",
        Resource.ALERT_CHANNELS,
        WRITE_CHANNELS,
    ),
    page("tokens/", tokens.TokenList.as_view(), "tokens", Resource.TOKENS),
    page("tokens/new/", tokens.create, "create_token", Resource.TOKENS, (WRITE, Resource.TOKENS)),
    page("tokens/<uuid:pk>/revoke/", tokens.revoke, "revoke_token", Resource.TOKENS, (WRITE, Resource.TOKENS)),
    page("users/", users.UserList.as_view(), "users", Resource.USERS),
    page("users/new/", users.create, "create_user", Resource.USERS, (WRITE, Resource.USERS)),
    page("users/<int:pk>/", users.show_user, "user", Resource.USERS),
    page("users/<int:pk>/role/", users.change_role, "change_user_role", Resource.USERS, (WRITE, Resource.USERS)),
    page("users/<int:pk>/password/", users.set_password, "set_user_password", Resource.USERS, (WRITE, Resource.USERS)),
    page("users/<int:pk>/lock/", users.lock, "lock_user", Resource.USERS, (WRITE, Resource.USERS)),
    page("users/<int:pk>/unlock/", users.unlock, "unlock_user", Resource.USERS, (WRITE, Resource.USERS)),
    page("audit/", audit.AuditList.as_view(), "audit", Resource.AUDIT),
]
