"""Which letters a form means: those that were ticked, a group's, or all that a filter leaves."""

import json
from dataclasses import replace
from uuid import UUID

from django.http import HttpRequest, QueryDict

from console.access import seen, viewer
from queueapi.access.tenancy import visible_filter
from queueapi.choices import LetterState
from queueapi.errors import InvalidInput
from queueapi.models import DeadLetter
from queueapi.selectors.letter_filter import LetterFilter, Selection


def posted_selection(request: HttpRequest, state: LetterState) -> Selection:
    """Letters in that state, unless they were ticked. What no page of ours would send is left out, and so is what they
    may not know of."""
    selection = _posted(request.POST, state)
    if isinstance(selection, LetterFilter):
        return visible_filter(viewer(request), selection) or []
    if viewer(request).tenant_id is None:
        return selection
    known = set(seen(request, DeadLetter.objects.filter(pk__in=selection)).values_list("pk", flat=True))
    return [pk for pk in selection if pk in known]


def planned_selection(request: HttpRequest, state: LetterState) -> Selection:
    """What somebody confirms: of a filter's letters those that were in the state when its plan was shown."""
    selection = posted_selection(request, state)
    if not isinstance(selection, LetterFilter):
        return selection
    try:
        return LetterFilter.of({**selection.as_json(), "unchanged_since": request.POST.get("planned_at")})
    except InvalidInput:
        return []


def _posted(posted: QueryDict, state: LetterState) -> Selection:
    group = posted.get("group", "")
    if group.isdecimal() and len(group) < len(str(2**63)):
        return LetterFilter(group=int(group), state=state)
    if asked := posted.get("filter"):
        wanted = _filter(asked)
        return [] if wanted is None else replace(wanted, state=state)
    return _ticked(posted)


def filter_text(wanted: LetterFilter) -> str:
    """A filter as a form sends it."""
    return json.dumps(wanted.as_json(), sort_keys=True)


def _filter(text: str) -> LetterFilter | None:
    try:
        asked = json.loads(text)
        return LetterFilter.of(asked) if isinstance(asked, dict) else None
    except (ValueError, RecursionError, InvalidInput):
        return None


def _ticked(posted: QueryDict) -> list[UUID]:
    chosen = []
    for text in posted.getlist("letter"):
        try:
            chosen.append(UUID(text))
        except ValueError:
            continue
    return chosen
