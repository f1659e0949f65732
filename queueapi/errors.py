"""What an action refuses, and why. `queueapi.rest.problems` gives each its status."""

from queuecore.errors import QueueError


class ActionError(QueueError):
    """A change that was not made."""

    code = "refused"


class NotReplayable(ActionError):
    code = "not_replayable"


class NotChangeable(ActionError):
    """Letters that somebody else has changed meanwhile, or that are in no state to be changed so."""

    code = "not_changeable"


class AlreadyFinal(ActionError):
    code = "already_final"


class InvalidInput(ActionError):
    code = "invalid_input"
