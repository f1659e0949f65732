from typing import Any
from uuid import UUID

import django_filters
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.functional import cached_property
from django.views.decorators.http import require_POST, require_safe

from console import letter_notes
from console.access import seen
from console.filters import LetterListFilter
from console.letter_selections import filter_text
from console.lists import ListPage, Sort, Tab, make_tabs
from console.live import render_live
from console.payloads import show_headers, show_payload
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterBody, DeadLetterEdit, DeadLetterGroup, QuarantinedLetter, Replay
from queueapi.selectors.dead_letters import (
    COUNTED,
    SEARCHED,
    LetterCounts,
    count_letters,
    is_search_bounded,
    letters_for_lists,
)
from queueapi.selectors.freshness import freshness_from, freshness_values
from queueapi.selectors.group_rows import group_rows
from queueapi.selectors.ledger import ledger_of
from queueapi.selectors.letter_filter import LetterFilter
from queueapi.selectors.letter_groups import largest_open_groups, last_replay, tenants_hit
from queueapi.selectors.message_types import form_of_queue
from queueapi.times import read_aware_time

WHY_NOT_REPLAYABLE = {
    LetterState.REPLAYING: "It is being replayed right now.",
    LetterState.REPLAYED: "It was replayed, and its handler succeeded.",
    LetterState.FAILED_AGAIN: "Its replay failed and became a letter of its own: replay that one.",
    LetterState.DISCARDED: "It was discarded: restore it first.",
}
# By the state that is looked at.
_TO_ALL = {
    LetterState.OPEN: ("Replay", "replay_letters"),
    LetterState.DISCARDED: ("Restore", "restore_letters"),
    LetterState.REPLAYING: ("Release", "release_letters"),
}


class LetterPages(Paginator):  # type: ignore[type-arg]
    """Pages of letters that were counted already. However many there are, only so many can be turned over."""

    def __init__(self, rows: QuerySet[Any], size: int, letters: int) -> None:
        super().__init__(rows, size)
        self.letters = letters

    @cached_property
    def count(self) -> int:
        return min(self.letters, COUNTED)


class LetterList(ListPage):
    template_name = "dead_letters/list.html"
    filter_class = LetterListFilter
    states = LetterState
    default_sort = Sort("failed", descending=True)
    columns = {
        "failed": "failed_at",
        "queue": "queue__name",
        "tenant": "tenant__name",
        "error": "exception_class",
        "attempts": "attempts",
        "state": "state",
    }

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Rows stay as they are while somebody decides on them: kept up to date is how many newer ones there are."""
        if getattr(request, "htmx", False):
            response = render(request, "dead_letters/newer.html", {"newer": self._newer()})
        else:
            response = super().get(request, *args, **kwargs)
        patch_vary_headers(response, ["HX-Request"])
        return response

    def all_rows(self) -> QuerySet[Any]:
        return letters_for_lists()

    @cached_property
    def filters(self) -> LetterListFilter:
        return LetterListFilter(self.request.GET, request=self.request)

    @cached_property
    def counts(self) -> LetterCounts:
        return count_letters(self.filters.wanted) if self.filters.is_valid() else LetterCounts({})

    def paginator(self, _filters: django_filters.FilterSet, rows: QuerySet[Any]) -> "Paginator[Any]":
        return LetterPages(rows, self.page_size(), self._letters())

    def sort(self) -> Sort:
        """Many letters are sorted by time alone, for which there is an index."""
        return super().sort() if self._letters() <= COUNTED else self._by_time()

    def tabs(self) -> list[Tab]:
        current = self.filters.wanted.state or ""
        numbers = {state.value: number for state, number in self.counts.by_state.items()}
        return make_tabs(LetterState, numbers, current, is_exact=self.counts.is_exact)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        wanted = self.filters.wanted
        is_decided = wanted.state in (LetterState.DISCARDED, LetterState.REPLAYING)
        return super().get_context_data(
            **kwargs,
            **self._groups(wanted.group),
            replay=self.replay(),
            letters=self._letters(),
            most_pages=COUNTED,
            is_sorted_by_time_alone=super().sort().column != "failed" and self._letters() > COUNTED,
            searched=self.searched(),
            quarantined=0 if wanted.group else QuarantinedLetter.objects.count(),
            selectable=wanted.state if is_decided else LetterState.OPEN,
            all_matching=_all_matching(wanted) if self.filters.is_valid() else None,
            counts_exact=self.counts.is_exact,
        )

    def searched(self) -> int | None:
        """How many letters a text was looked for in, where there are more."""
        return SEARCHED if self.filters.is_valid() and is_search_bounded(self.filters.wanted) else None

    def replay(self) -> Replay | None:
        """That whose letters are listed, where whoever looks may know of it."""
        wanted = self.filters.wanted.replay
        replays = seen(self.request, Replay.objects.select_related("operation"))
        return replays.filter(pk=wanted).first() if wanted else None

    def _groups(self, wanted: int | None) -> dict[str, Any]:
        """The largest, and what is known of the one whose letters are listed."""
        shown = _group(wanted)
        largest = largest_open_groups()
        rows = group_rows([*largest, shown] if shown else largest, with_replays=False)
        if shown is None:
            return {"groups": rows}
        facts = _group_facts(shown, rows[-1].trend)
        return {"groups": rows[:-1], "group": facts, "freshness": freshness_from(vars(shown))}

    def _newer(self) -> int:
        """How many letters the filters leave that failed later than the newest that is shown."""
        newest = read_aware_time(self.request.GET.get("newer_than", ""))
        letters: QuerySet[DeadLetter] = self.filters.qs
        newer = letters.filter(failed_at__gt=newest) if newest else letters
        return newer.order_by()[:COUNTED].count()

    def _letters(self) -> int:
        state = self.filters.wanted.state
        return self.counts.total if state is None else self.counts.by_state.get(state, 0)

    def _by_time(self) -> Sort:
        asked = super().sort()
        return asked if asked.column == self.default_sort.column else self.default_sort


@require_safe
def show_letter(request: HttpRequest, pk: UUID) -> HttpResponse:
    joined = ("queue__tenant", "tenant", "group", "replay__operation", "replay_of", "decision", "body")
    letter = get_object_or_404(DeadLetter.objects.select_related(*joined), pk=pk)
    edit = DeadLetterEdit.objects.filter(letter=letter).first() if letter.is_edited else None
    message_form = form_of_queue(letter.queue)
    context = {
        "letter": letter,
        "seen_note": letter_notes.seen_note(letter),
        "failed_replays": list(letter.failed_replays.order_by("failed_at").only("id", "failed_at", "state")),
        "why_not_replayable": WHY_NOT_REPLAYABLE.get(letter.state_choice, ""),
        "payload": show_payload(bytes(letter.body.payload), message_form),
        "headers": show_headers(letter.body.headers),
        "raw_key": show_payload(bytes(letter.raw_key)) if letter.raw_key else None,
        "edit": edit,
        "edited_payload": show_payload(bytes(edit.payload), message_form) if edit else None,
        "ledger": ledger_of(letter),
    }
    is_final = letter.state != LetterState.REPLAYING
    return render_live(request, "dead_letters/page.html", "dead_letters/live.html", context, is_final=is_final)


@require_POST
def write_note(request: HttpRequest, pk: UUID) -> HttpResponse:
    return letter_notes.write_note(request, get_object_or_404(DeadLetter, pk=pk))


@require_POST
def write_group_note(request: HttpRequest, pk: int) -> HttpResponse:
    return letter_notes.write_note(request, get_object_or_404(DeadLetterGroup, pk=pk))


@require_safe
def download_payload(_request: HttpRequest, pk: UUID) -> HttpResponse:
    """The bytes as they were sent, as a file: never as something a browser would show."""
    body = get_object_or_404(DeadLetterBody, pk=pk)
    name = f'attachment; filename="{body.pk}.bin"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff"}
    return HttpResponse(bytes(body.payload), content_type="application/octet-stream", headers=headers)


def _all_matching(wanted: LetterFilter) -> dict[str, str] | None:
    """What can be done to all letters that the filters leave; None where they are of several states."""
    if wanted.state not in _TO_ALL:
        return None
    verb, name = _TO_ALL[wanted.state]
    title = "All that these filters leave, on every page; shows first what would be done"
    return {"verb": verb, "url": reverse(name), "filter": filter_text(wanted), "title": title}


def _group(group_id: int | None) -> DeadLetterGroup | None:
    """With what tells how old the pipeline's figures are."""
    if group_id is None:
        return None
    groups = DeadLetterGroup.objects.select_related("queue__tenant").annotate(**freshness_values())
    return groups.filter(pk=group_id).first()


def _group_facts(group: DeadLetterGroup, trend: list[int]) -> dict[str, Any]:
    """What a list of one group's letters says of the group."""
    return {
        "group": group,
        "seen_note": letter_notes.seen_note(group),
        "tenants": tenants_hit(group),
        "last_replay": last_replay(group),
        "trend": trend,
        "none_open": "" if group.open_letters else "None of its letters is open.",
    }
