"""What the frame around every page shows."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.http import HttpRequest

from console.access import viewer
from queueapi.selectors.frame import FrameCounts, frame_counts


def firing(request: HttpRequest) -> dict[str, Any]:
    """For every template: how many alerts fire, and how many isolation requests are to be decided on, as far as
    whoever looks may know. Asked where it is shown alone, and once."""
    counts: Callable[[], FrameCounts] = cache(lambda: frame_counts(viewer(request)))
    return {"firing_alerts": lambda: counts().firing, "isolations_to_decide": lambda: counts().undecided}
