"""What a tenant's people are told of an operation of theirs: how far it is, and what they can do. What goes wrong
within the installation (ids of services, addresses, texts of errors) is for who runs the system."""

from typing import Any, Final

from queueapi.models import Operation, OperationLogEntry
from queueapi.replaying import is_reason_to_stop
from queueapi.selectors.operations import newest_log_entries
from queueapi.selectors.queue_operations import HANDOVERS, RESIZE

WAITS: Final = "waits and will try again"

# What these wait for names services, and what others have sent.
_SYSTEMS: Final = (*HANDOVERS, RESIZE)
_QUEUES_FAILED: Final = "it could not go on; administrators see why, and can have it tried again"
_FAILED: Final = (
    "it could not go on, and what was not sent is open again; those who run the system see why, and have to mend that "
    "before it is replayed"
)


def waits_because(reason: object) -> str:
    """For its log. Whoever runs the system reads all of it."""
    return f"{WAITS}: {reason}"


def error_of_operation(operation: Operation, *, is_detailed: bool) -> str:
    """Why it failed; empty: it has not. That too many letters failed again is their own affair, and told as it is."""
    if is_detailed or not operation.error or is_reason_to_stop(operation.error):
        return operation.error
    return _QUEUES_FAILED if operation.kind in _SYSTEMS else _FAILED


def result_of_operation(operation: Operation, *, is_detailed: bool) -> dict[str, Any]:
    """What came of it, in its last line's words; nothing where those are the system's affair."""
    return operation.result if is_detailed or operation.kind not in _SYSTEMS else {}


def log_of_operation(operation: Operation, *, is_detailed: bool) -> list[OperationLogEntry]:
    """Its newest lines; none where they are the system's affair. An isolation has words of its own."""
    if is_detailed:
        return newest_log_entries(operation)
    if operation.kind in _SYSTEMS:
        return []
    lines = newest_log_entries(operation)
    for line in lines:
        line.text = _plain(operation, line.text)
    return lines


def _plain(operation: Operation, text: str) -> str:
    if text == operation.error:
        return error_of_operation(operation, is_detailed=False)
    return WAITS if text.startswith(WAITS) else text
