"""What every page counts in its frame."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet, Value

from queueapi.access.principals import Principal
from queueapi.access.tenancy import visible
from queueapi.choices import AlertState
from queueapi.models import Alert
from queueapi.selectors.isolation import undecided_requests

_FIRING, _UNDECIDED = 0, 1


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """Alerts that fire, and isolation requests that nobody has decided on."""

    firing: int
    undecided: int


def frame_counts(principal: Principal) -> FrameCounts:
    """Of what they may know of. One query: every page asks."""
    firing = _counted(visible(principal, Alert.objects.filter(state=AlertState.FIRING)), _FIRING)
    undecided = _counted(visible(principal, undecided_requests()), _UNDECIDED)
    found = dict(firing.union(undecided, all=True))
    return FrameCounts(found.get(_FIRING, 0), found.get(_UNDECIDED, 0))


def _counted(rows: QuerySet[Any], kind: int) -> QuerySet[Any, Any]:
    """One row, or none where nothing is counted."""
    of_kind = rows.order_by().annotate(kind=Value(kind)).values("kind")
    counted: QuerySet[Any, Any] = of_kind.annotate(number=Count("pk")).values_list("kind", "number")
    return counted
