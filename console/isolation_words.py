"""What the states of an isolation mean to whoever looks at it."""

from collections.abc import Mapping
from typing import Final

from queueapi.choices import IsolationState
from queueapi.models import IsolationRequest

_MEANS: Final[Mapping[IsolationState, str]] = {
    IsolationState.REQUESTED: "Nothing has been done yet.",
    IsolationState.APPROVED: "It is about to be carried out.",
    IsolationState.REFUSED: "Nothing was changed.",
    IsolationState.PROVISIONING: "The topics of its own queues are being created.",
    IsolationState.HANDING_OVER: "Its messages go to its own queues, and wait there for those sent before.",
    IsolationState.ACTIVE: "Its own queues are consumed.",
    IsolationState.RETIRING: "Its messages go to the shared queues again, and wait there for those sent before.",
    IsolationState.RETIRED: "Its messages are in the shared queues again; its own queues are gone, or go.",
    IsolationState.FAILED: "It came to nothing. No message is lost, and it can be tried again.",
}


def means_of(request: IsolationRequest) -> str:
    return _MEANS[request.state_choice]
