"""What the control plane remembers. Only `queueapi.actions` writes it; the summaries are the Spark job's."""

from queueapi.models.account import Account
from queueapi.models.audit import AuditEntry
from queueapi.models.dead_letter import DeadLetter, DeadLetterBody, DeadLetterEdit, LetterEpoch, QuarantinedLetter
from queueapi.models.dead_letter_group import DeadLetterGroup, DeadLetterTally
from queueapi.models.idempotency import IdempotencyKey
from queueapi.models.isolation import IsolationComment, IsolationRequest
from queueapi.models.ledger import LedgerEntry
from queueapi.models.message_type import MessageType, MessageTypeTopic, MessageTypeVersion
from queueapi.models.operation import Operation, OperationLogEntry
from queueapi.models.pause import Pause
from queueapi.models.process import ManagedProcess
from queueapi.models.queue import Queue
from queueapi.models.replay import Replay, ReplayChunk, ReplayItem
from queueapi.models.sign_in import SignInFailures
from queueapi.models.standing import ConsumerStanding
from queueapi.models.summary import LagCurrent, PipelineRun
from queueapi.models.tenant import Tenant
from queueapi.models.tenant_profile import DEFAULT_PROFILE, TenantProfile
from queueapi.models.token import ApiToken

__all__ = [
    "DEFAULT_PROFILE",
    "Account",
    "ApiToken",
    "AuditEntry",
    "ConsumerStanding",
    "DeadLetter",
    "DeadLetterBody",
    "DeadLetterEdit",
    "DeadLetterGroup",
    "DeadLetterTally",
    "IdempotencyKey",
    "IsolationComment",
    "IsolationRequest",
    "LagCurrent",
    "LedgerEntry",
    "LetterEpoch",
    "ManagedProcess",
    "MessageType",
    "MessageTypeTopic",
    "MessageTypeVersion",
    "Operation",
    "OperationLogEntry",
    "Pause",
    "PipelineRun",
    "QuarantinedLetter",
    "Queue",
    "Replay",
    "ReplayChunk",
    "ReplayItem",
    "SignInFailures",
    "Tenant",
    "TenantProfile",
]
