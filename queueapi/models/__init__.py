"""What the control plane remembers. Only `queueapi.actions` writes it; the summaries are the Spark job's."""

from queueapi.models.audit import AuditEntry
from queueapi.models.dead_letter import DeadLetter
from queueapi.models.operation import Operation, OperationLogEntry
from queueapi.models.process import ManagedProcess, ServiceInstance
from queueapi.models.queue import Queue
from queueapi.models.summary import LagCurrent, PipelineRun
from queueapi.models.tenant import Tenant

__all__ = [
    "AuditEntry",
    "DeadLetter",
    "LagCurrent",
    "ManagedProcess",
    "Operation",
    "OperationLogEntry",
    "PipelineRun",
    "Queue",
    "ServiceInstance",
    "Tenant",
]
