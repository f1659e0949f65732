"""What a tenant's people are told of an isolation: what happens and what it waits for. Ids of services, how much others
have sent and texts of errors are for who runs the system."""

from typing import Final

from queueapi.models import IsolationRequest
from queueapi.selectors.queue_operations import ISOLATE, RETURN

_BEGIN: Final = "a worker, to begin"
_FAILED: Final = "it could not go on; administrators see why, and can have it tried again"
_CANCELLED: Final = "it was cancelled; administrators can have it tried again"

# By how many of its steps are done: see ISOLATION_STEPS and RETURN_STEPS. What follows the last is as the last.
_WAITS: Final = {
    ISOLATE: (
        "the topics of its own queues, to be created",
        "whoever sends, to hear where its messages go now",
        "messages that were sent before, to be handled in the shared queues",
        "messages that were sent before, to be handled in the shared queues",
        "its own queues, to be consumed",
    ),
    RETURN: (
        "its own queues, to have little left; one that is paused has to be resumed, and replays into it have to end",
        "whoever sends, to hear where its messages go now",
        "messages that its own queues still have, to be handled",
        "what was held back in the shared queues, to be handled",
        "its own queues, to be removed; dead letters there have to be decided on, and replays into them have to end",
    ),
}


def waits_for(request: IsolationRequest, *, is_detailed: bool) -> str:
    """What its operation does or waits for at the moment; empty: nothing is under way."""
    operation = request.operation
    if operation is None or operation.state_choice.is_final:
        return ""
    if is_detailed and (line := getattr(request, "last_line", None)):
        return str(line)
    if operation.started_at is None or operation.kind not in _WAITS:
        return _BEGIN
    words = _WAITS[operation.kind]
    return words[min(operation.done, len(words) - 1)]


def error_of(request: IsolationRequest, *, is_detailed: bool) -> str:
    """Why it has come to nothing; empty: it has not."""
    if is_detailed or not request.error:
        return request.error
    return _CANCELLED if request.is_cancelled else _FAILED
