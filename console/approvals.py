"""Isolation requests that wait for a decision, on the first page: one click from there to the plan of each."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Window
from django.urls import reverse

from console.problems import Problem
from console.templatetags.console import age_text
from queueapi.choices import IsolationState, Tone
from queueapi.models import IsolationRequest
from queueapi.selectors.isolation import undecided_requests

_TOLD: Final = 3
_QUEUES_TOLD: Final = 3


@dataclass(frozen=True, slots=True)
class Approvals:
    """`number` counts all that wait; `problems` tells of the oldest one by one, and of the others in a line: nothing is
    wrong, somebody waits."""

    number: int
    problems: list[Problem]


def approvals() -> Approvals:
    """One query."""
    waiting = undecided_requests().select_related("tenant").annotate(number=Window(Count("pk")))
    oldest = list(waiting[:_TOLD])
    number = oldest[0].number if oldest else 0
    told = [_problem(one) for one in oldest]
    if number > len(told):
        listed = f"{reverse('isolation_requests')}?state={IsolationState.REQUESTED.value}&sort=asked"
        told.append(Problem(Tone.BUSY, f"{number - len(told):,} more ask for queues of their own.", listed, "See all"))
    return Approvals(number, told)


def _problem(request: IsolationRequest) -> Problem:
    names = request.queue_names
    more = f" and {len(names) - _QUEUES_TOLD:,} more" if len(names) > _QUEUES_TOLD else ""
    asked = f"{', '.join(names[:_QUEUES_TOLD])}{more}"
    text = f"{request.tenant} asked for {asked} of its own {age_text(request.created_at)}."
    return Problem(Tone.BUSY, text, reverse("isolation_request", args=[request.pk]), "Decide on it")
