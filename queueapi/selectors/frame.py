"""What every page counts in its frame."""

from dataclasses import dataclass

from queueapi.access.principals import Principal
from queueapi.access.tenancy import visible
from queueapi.choices import AlertState
from queueapi.models import Alert
from queueapi.selectors.counting import counts_of
from queueapi.selectors.isolation import undecided_requests


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """Alerts that fire, and isolation requests that nobody has decided on."""

    firing: int
    undecided: int


def frame_counts(principal: Principal) -> FrameCounts:
    """Of what they may know of. One query: every page asks."""
    firing = visible(principal, Alert.objects.filter(state=AlertState.FIRING))
    return FrameCounts(*counts_of(firing, visible(principal, undecided_requests())))
