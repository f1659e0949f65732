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


class QueueNotActive(ActionError):
    """The queue is not there yet, takes no more messages, or is being deleted."""

    code = "queue_not_active"


class NotRemovable(ActionError):
    """A queue that cannot be drained or deleted as things are."""

    code = "not_removable"


class ChangedMeanwhile(ActionError):
    """What was to be changed is no longer as whoever asked has seen it."""

    code = "changed_meanwhile"


class AlreadyFinal(ActionError):
    code = "already_final"


class AlreadyUnderWay(ActionError):
    """Of which there is one at a time."""

    code = "already_under_way"


class InvalidInput(ActionError):
    code = "invalid_input"


class LastAdministrator(ActionError):
    """Without whom nobody could let anybody in."""

    code = "last_administrator"


class NotAllowed(ActionError):
    """What somebody asks for is more than they may themselves."""

    code = "not_allowed"


class AppendOnly(ActionError):
    """What was written once and for all."""

    code = "append_only"


class TenantSuspended(ActionError):
    """Nothing is published for this tenant until somebody resumes it."""

    code = "tenant_suspended"


class PlanChanged(ActionError):
    """What was shown would not be what is done: things have changed since."""

    code = "plan_changed"


class Incompatible(ActionError):
    """A next version as which messages of the one before would be misread; its fields tell each reason."""

    code = "incompatible"


class TooManyTails(ActionError):
    """As many clients follow messages as may."""

    code = "too_many_tails"
    retryable = True
