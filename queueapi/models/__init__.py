"""What the control plane remembers. Only `queueapi.actions` writes it; the summaries are the Spark job's."""

from queueapi.models.audit import AuditEntry
from queueapi.models.dead_letter import DeadLetter, DeadLetterBody, DeadLetterEdit, LetterEpoch, QuarantinedLetter
from queueapi.models.dead_letter_group import DeadLetterGroup, DeadLetterTally
from queueapi.models.ledger import LedgerEntry
from queueapi.models.operation import Operation, OperationLogEntry
from queueapi.models.pause import Pause
from queueapi.models.process import ManagedProcess
from queueapi.models.queue import Queue
from queueapi.models.replay import Replay, ReplayChunk, ReplayItem
from queueapi.models.standing import ConsumerStanding
from queueapi.models.summary import LagCurrent, PipelineRun
from queueapi.models.tenant import Tenant

__all__ = [
    "AuditEntry",
    "ConsumerStanding",
    "DeadLetter",
    "DeadLetterBody",
    "DeadLetterEdit",
    "DeadLetterGroup",
    "DeadLetterTally",
    "LagCurrent",
    "LedgerEntry",
    "LetterEpoch",
    "ManagedProcess",
    "Operation",
    "OperationLogEntry",
    "Pause",
    "PipelineRun",
    "QuarantinedLetter",
    "Queue",
    "Replay",
    "ReplayChunk",
    "ReplayItem",
    "Tenant",
]
