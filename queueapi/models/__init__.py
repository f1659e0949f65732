"""What the control plane remembers. Only `queueapi.actions` writes it; the summaries are the Spark job's."""

from queueapi.models.account import Account
from queueapi.models.alert import Alert, AlertEvaluation
from queueapi.models.alert_channel import AlertChannel, AlertDelivery, AlertNotice
from queueapi.models.alert_rule import AlertBreach, AlertRule
from queueapi.models.audit import AuditEntry
from queueapi.models.dead_letter import DeadLetter, DeadLetterBody, DeadLetterEdit, LetterEpoch, QuarantinedLetter
from queueapi.models.dead_letter_group import DeadLetterGroup, DeadLetterTally
from queueapi.models.flow import (
    DeadLetterTrend,
    PartitionHeat,
    ProcessingDay,
    ProcessingHour,
    ProcessingMinute,
    QueueSkew,
    TenantUsageDay,
)
from queueapi.models.idempotency import IdempotencyKey
from queueapi.models.isolation import IsolationComment, IsolationRequest
from queueapi.models.lag import LagCurrent, LagDay, LagHour, LagMinute
from queueapi.models.ledger import LedgerEntry
from queueapi.models.message_type import MessageType, MessageTypeTopic, MessageTypeVersion
from queueapi.models.operation import Operation, OperationLogEntry
from queueapi.models.pause import Pause
from queueapi.models.pipeline import PipelineRun, PipelineStanding
from queueapi.models.process import ManagedProcess
from queueapi.models.queue import Queue
from queueapi.models.replay import Replay, ReplayChunk, ReplayItem
from queueapi.models.request_stats import RequestCurrent, RequestDay, RequestHour, RequestStats
from queueapi.models.sign_in import SignInFailures
from queueapi.models.silence import Silence
from queueapi.models.standing import ConsumerStanding, StaleCommits
from queueapi.models.tenant import Tenant
from queueapi.models.tenant_profile import DEFAULT_PROFILE, TenantProfile
from queueapi.models.token import ApiToken

__all__ = [
    "DEFAULT_PROFILE",
    "Account",
    "Alert",
    "AlertBreach",
    "AlertChannel",
    "AlertDelivery",
    "AlertEvaluation",
    "AlertNotice",
    "AlertRule",
    "ApiToken",
    "AuditEntry",
    "ConsumerStanding",
    "DeadLetter",
    "DeadLetterBody",
    "DeadLetterEdit",
    "DeadLetterGroup",
    "DeadLetterTally",
    "DeadLetterTrend",
    "IdempotencyKey",
    "IsolationComment",
    "IsolationRequest",
    "LagCurrent",
    "LagDay",
    "LagHour",
    "LagMinute",
    "LedgerEntry",
    "LetterEpoch",
    "ManagedProcess",
    "MessageType",
    "MessageTypeTopic",
    "MessageTypeVersion",
    "Operation",
    "OperationLogEntry",
    "PartitionHeat",
    "Pause",
    "PipelineRun",
    "PipelineStanding",
    "ProcessingDay",
    "ProcessingHour",
    "ProcessingMinute",
    "QuarantinedLetter",
    "Queue",
    "QueueSkew",
    "Replay",
    "ReplayChunk",
    "ReplayItem",
    "RequestCurrent",
    "RequestDay",
    "RequestHour",
    "RequestStats",
    "SignInFailures",
    "Silence",
    "StaleCommits",
    "Tenant",
    "TenantProfile",
    "TenantUsageDay",
]
