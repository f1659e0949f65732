"""States and their looks: value, label, and the tone a badge has."""

from typing import Final

from django.db import models


class Tone(models.TextChoices):
    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


class QueueState(models.TextChoices):
    """Creating: its topics are not all there yet. Handing over: it takes messages, and nobody consumes it yet.
    Draining: it takes no more messages, and those it has are consumed. Deleting: nobody consumes it any more, and what
    is left of it goes."""

    CREATING = "creating", "Creating"
    HANDING_OVER = "handing_over", "Handing over"
    ACTIVE = "active", "Active"
    DRAINING = "draining", "Draining"
    DELETING = "deleting", "Deleting"

    @property
    def tone(self) -> Tone:
        return _QUEUE_TONES[self]


class OperationState(models.TextChoices):
    PENDING = "pending", "Pending"
    RUNNING = "running", "Running"
    CANCELLING = "cancelling", "Cancelling"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"

    @property
    def tone(self) -> Tone:
        return _OPERATION_TONES[self]

    @property
    def is_final(self) -> bool:
        return self in FINAL_OPERATION_STATES


class LetterState(models.TextChoices):
    OPEN = "open", "Open"
    REPLAYING = "replaying", "Replaying"
    REPLAYED = "replayed", "Replayed"
    FAILED_AGAIN = "failed_again", "Failed again"
    DISCARDED = "discarded", "Discarded"

    @property
    def tone(self) -> Tone:
        return _LETTER_TONES[self]


class ReplayItemState(models.TextChoices):
    """`arrived` is sent as well: the target was looked through after a crash, and has the message."""

    PENDING = "pending", "Pending"
    SENT = "sent", "Sent"
    ARRIVED = "arrived", "Arrived"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed again"
    SKIPPED = "skipped", "Skipped"

    @property
    def tone(self) -> Tone:
        return _REPLAY_ITEM_TONES[self]


class LedgerAction(models.TextChoices):
    """What people and the system do to letters."""

    REPLAY = "replay", "Replayed"
    EDIT = "edit", "Edited"
    DISCARD = "discard", "Discarded"
    RESTORE = "restore", "Restored"
    NOTE = "note", "Noted"
    PURGE = "purge", "Removed for their age"


class ProcessState(models.TextChoices):
    RUNNING = "running", "Running"
    RESTARTING = "restarting", "Restarting"
    STOPPED = "stopped", "Stopped"

    @property
    def tone(self) -> Tone:
        return _PROCESS_TONES[self]


class ConsumerState(models.TextChoices):
    WAITING = "waiting", "Waiting for a partition"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    STALLED = "stalled", "Stalled"
    STANDING_STILL = "standing_still", "Standing still"

    @property
    def tone(self) -> Tone:
        return _CONSUMER_TONES[self]


class LagStatus(models.TextChoices):
    """How a group gets on with a partition. Warn: it goes on, and falls behind. Stop: nobody commits or tries. Stall:
    its consumer tries or commits, and gets no further. Rewind: it has gone back, and is not yet where it was."""

    OK = "ok", "OK"
    WARN = "warn", "WARN"
    STOP = "stop", "STOP"
    STALL = "stall", "STALL"
    REWIND = "rewind", "REWIND"

    @property
    def tone(self) -> Tone:
        return _LAG_TONES[self]

    @property
    def badness(self) -> int:
        """The higher, the worse: a queue is as its worst partition is."""
        return _LAG_BADNESS.index(self)


class TenantState(models.TextChoices):
    ACTIVE = "active", "Active"
    SUSPENDED = "suspended", "Suspended"

    @property
    def tone(self) -> Tone:
        return _TENANT_TONES[self]


class IsolationState(models.TextChoices):
    """Of a request for queues of a tenant's own. Handing over: the tenant's messages go to them, and are consumed once
    those before them are done. Retiring: they go to the shared queues again, and wait there for the same."""

    REQUESTED = "requested", "Requested"
    APPROVED = "approved", "Approved"
    REFUSED = "refused", "Refused"
    PROVISIONING = "provisioning", "Provisioning"
    HANDING_OVER = "handing_over", "Handing over"
    ACTIVE = "active", "Active"
    RETIRING = "retiring", "Retiring"
    RETIRED = "retired", "Retired"
    FAILED = "failed", "Failed"

    @property
    def tone(self) -> Tone:
        return _ISOLATION_TONES[self]


class RebalanceState(models.TextChoices):
    """As `queuecore.cluster.rebalances` has them."""

    PLANNED = "planned", "Planned"
    RUNNING = "running", "Running"
    RETRYING = "retrying", "Trying again"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"

    @property
    def tone(self) -> Tone:
        return _REBALANCE_TONES[self]

    @property
    def is_final(self) -> bool:
        return self in FINAL_REBALANCE_STATES


class AlertState(models.TextChoices):
    """Acknowledged: somebody sees to it. Silenced: a silence holds, and nobody is told. Resolved: it is over."""

    FIRING = "firing", "Firing"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    SILENCED = "silenced", "Silenced"
    RESOLVED = "resolved", "Resolved"

    @property
    def tone(self) -> Tone:
        return _ALERT_TONES[self]


class AlertSeverity(models.TextChoices):
    INFO = "info", "Info"
    WARNING = "warning", "Warning"
    CRITICAL = "critical", "Critical"

    @property
    def tone(self) -> Tone:
        return _SEVERITY_TONES[self]


class AlertMetric(models.TextChoices):
    """What a rule looks at. `queueapi.alerting.metrics` says of what each is, and how it is told."""

    LAG_MESSAGES = "lag_messages", "Messages that wait"
    LAG_SECONDS = "lag_seconds", "Seconds behind"
    STALLED_PARTITIONS = "stalled_partitions", "Partitions that stop or stall"
    ERROR_RATE = "error_rate", "Error rate"
    NEW_LETTERS = "new_letters", "New dead letters"
    OPEN_LETTERS = "open_letters", "Open dead letters"
    PENDING_REQUESTS = "pending_requests", "Pending requests"
    REQUEST_TIMEOUTS = "request_timeouts", "Requests that timed out"
    RESPONSE_LAG = "response_lag", "Response lag"
    LEASE_LOSSES = "lease_losses", "Lost service instances"
    PIPELINE_LATE = "pipeline_late", "Pipeline late"


class ChannelKind(models.TextChoices):
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack-compatible"


class NoticeKind(models.TextChoices):
    """What somebody is told about an alert."""

    FIRED = "fired", "Fired"
    ESCALATED = "escalated", "Escalated"
    RESOLVED = "resolved", "Resolved"


class DeliveryState(models.TextChoices):
    PENDING = "pending", "Pending"
    SENT = "sent", "Sent"
    FAILED = "failed", "Given up"

    @property
    def tone(self) -> Tone:
        return _DELIVERY_TONES[self]


class Role(models.TextChoices):
    """What somebody is here to do. `queueapi.access.table` says what each may."""

    ADMINISTRATOR = "administrator", "Administrator"
    OPERATOR = "operator", "Operator"
    AUDITOR = "auditor", "Auditor"
    TENANT_ADMIN = "tenant_admin", "Tenant administrator"
    TENANT_VIEWER = "tenant_viewer", "Tenant viewer"

    @property
    def tone(self) -> Tone:
        return _ROLE_TONES[self]

    @property
    def is_of_tenant(self) -> bool:
        return self in TENANT_ROLES


# Tuples, not sets: they become part of database constraints, whose order must not vary.
FINAL_OPERATION_STATES: Final = (OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELLED)
ROUTED_QUEUE_STATES: Final = (QueueState.HANDING_OVER, QueueState.ACTIVE)
CONSUMED_QUEUE_STATES: Final = (QueueState.ACTIVE, QueueState.DRAINING)
# They have topics, and messages in them that somebody handles or will.
STANDING_QUEUE_STATES: Final = (QueueState.HANDING_OVER, *CONSUMED_QUEUE_STATES)
ENDING_QUEUE_STATES: Final = (QueueState.DRAINING, QueueState.DELETING)
FINAL_REBALANCE_STATES: Final = (RebalanceState.DONE, RebalanceState.FAILED, RebalanceState.CANCELLED)
TENANT_ROLES: Final = (Role.TENANT_ADMIN, Role.TENANT_VIEWER)
CARRIED_OUT_ISOLATION_STATES: Final = (
    IsolationState.APPROVED,
    IsolationState.PROVISIONING,
    IsolationState.HANDING_OVER,
    IsolationState.RETIRING,
)
# A tenant has one request at a time that is decided on or carried out.
OPEN_ISOLATION_STATES: Final = (IsolationState.REQUESTED, *CARRIED_OUT_ISOLATION_STATES)
PAUSABLE_OPERATION_STATES: Final = (OperationState.PENDING, OperationState.RUNNING)
# From each state, the states that may follow it. Given back by a replay that did not send it, a letter is open again.
# One that was sent, and opened again before its outcome came, still hears that. One that failed again lives on as the
# letter its replay became: replaying both would send the message twice.
LEGAL_LETTER_CHANGES: Final = {
    LetterState.OPEN: (
        LetterState.REPLAYING,
        LetterState.DISCARDED,
        LetterState.REPLAYED,
        LetterState.FAILED_AGAIN,
    ),
    LetterState.REPLAYING: (LetterState.OPEN, LetterState.REPLAYED, LetterState.FAILED_AGAIN),
    LetterState.REPLAYED: (),
    LetterState.FAILED_AGAIN: (),
    LetterState.DISCARDED: (LetterState.OPEN,),
}
# Who sees to an alert is not called again. A silence that ends leaves it firing.
LEGAL_ALERT_CHANGES: Final = {
    AlertState.FIRING: (AlertState.ACKNOWLEDGED, AlertState.SILENCED, AlertState.RESOLVED),
    AlertState.SILENCED: (AlertState.FIRING, AlertState.ACKNOWLEDGED, AlertState.RESOLVED),
    AlertState.ACKNOWLEDGED: (AlertState.RESOLVED,),
    AlertState.RESOLVED: (),
}
TROUBLED_CONSUMER_STATES: Final = (ConsumerState.STALLED, ConsumerState.STANDING_STILL)

_QUEUE_TONES: Final = {
    QueueState.CREATING: Tone.BUSY,
    QueueState.HANDING_OVER: Tone.BUSY,
    QueueState.ACTIVE: Tone.GOOD,
    QueueState.DRAINING: Tone.WARN,
    QueueState.DELETING: Tone.BAD,
}
_OPERATION_TONES: Final = {
    OperationState.PENDING: Tone.QUIET,
    OperationState.RUNNING: Tone.BUSY,
    OperationState.CANCELLING: Tone.WARN,
    OperationState.SUCCEEDED: Tone.GOOD,
    OperationState.FAILED: Tone.BAD,
    OperationState.CANCELLED: Tone.QUIET,
}
_REBALANCE_TONES: Final = {
    RebalanceState.PLANNED: Tone.QUIET,
    RebalanceState.RUNNING: Tone.BUSY,
    RebalanceState.RETRYING: Tone.WARN,
    RebalanceState.DONE: Tone.GOOD,
    RebalanceState.FAILED: Tone.BAD,
    RebalanceState.CANCELLED: Tone.QUIET,
}
_LETTER_TONES: Final = {
    LetterState.OPEN: Tone.BAD,
    LetterState.REPLAYING: Tone.BUSY,
    LetterState.REPLAYED: Tone.GOOD,
    LetterState.FAILED_AGAIN: Tone.WARN,
    LetterState.DISCARDED: Tone.QUIET,
}
_REPLAY_ITEM_TONES: Final = {
    ReplayItemState.PENDING: Tone.QUIET,
    ReplayItemState.SENT: Tone.BUSY,
    ReplayItemState.ARRIVED: Tone.BUSY,
    ReplayItemState.SUCCEEDED: Tone.GOOD,
    ReplayItemState.FAILED: Tone.WARN,
    ReplayItemState.SKIPPED: Tone.QUIET,
}
_PROCESS_TONES: Final = {
    ProcessState.RUNNING: Tone.GOOD,
    ProcessState.RESTARTING: Tone.BAD,
    ProcessState.STOPPED: Tone.QUIET,
}
_CONSUMER_TONES: Final = {
    ConsumerState.WAITING: Tone.QUIET,
    ConsumerState.RUNNING: Tone.GOOD,
    ConsumerState.PAUSED: Tone.WARN,
    ConsumerState.STALLED: Tone.BAD,
    ConsumerState.STANDING_STILL: Tone.BAD,
}
_LAG_BADNESS: Final = (LagStatus.OK, LagStatus.WARN, LagStatus.REWIND, LagStatus.STALL, LagStatus.STOP)
_LAG_TONES: Final = {
    LagStatus.OK: Tone.GOOD,
    LagStatus.WARN: Tone.WARN,
    LagStatus.STOP: Tone.BAD,
    LagStatus.STALL: Tone.BAD,
    LagStatus.REWIND: Tone.BAD,
}
_ROLE_TONES: Final = {
    Role.ADMINISTRATOR: Tone.WARN,
    Role.OPERATOR: Tone.BUSY,
    Role.AUDITOR: Tone.QUIET,
    Role.TENANT_ADMIN: Tone.GOOD,
    Role.TENANT_VIEWER: Tone.QUIET,
}
_ISOLATION_TONES: Final = {
    IsolationState.REQUESTED: Tone.WARN,
    IsolationState.APPROVED: Tone.BUSY,
    IsolationState.REFUSED: Tone.QUIET,
    IsolationState.PROVISIONING: Tone.BUSY,
    IsolationState.HANDING_OVER: Tone.BUSY,
    IsolationState.ACTIVE: Tone.GOOD,
    IsolationState.RETIRING: Tone.BUSY,
    IsolationState.RETIRED: Tone.QUIET,
    IsolationState.FAILED: Tone.BAD,
}
_TENANT_TONES: Final = {TenantState.ACTIVE: Tone.GOOD, TenantState.SUSPENDED: Tone.WARN}
_ALERT_TONES: Final = {
    AlertState.FIRING: Tone.BAD,
    AlertState.ACKNOWLEDGED: Tone.BUSY,
    AlertState.SILENCED: Tone.QUIET,
    AlertState.RESOLVED: Tone.GOOD,
}
_SEVERITY_TONES: Final = {
    AlertSeverity.INFO: Tone.QUIET,
    AlertSeverity.WARNING: Tone.WARN,
    AlertSeverity.CRITICAL: Tone.BAD,
}
_DELIVERY_TONES: Final = {
    DeliveryState.PENDING: Tone.BUSY,
    DeliveryState.SENT: Tone.GOOD,
    DeliveryState.FAILED: Tone.BAD,
}
