"""What an action refuses, and why. `queueapi.rest.problems` gives each its status."""

from queuecore.errors import QueueError


class ActionError(QueueError):
    """A change that was not made."""

    code = "refused"


class NotReplayable(ActionError):
    code = "not_replayable"


class AlreadyFinal(ActionError):
    code = "already_final"


class InvalidInput(ActionError):
    code = "invalid_input"
