"""Dead letters as a tenant's people see them: theirs, whichever queue they are of."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property
from django.views.decorators.http import require_POST, require_safe

from console.access import seen
from console.letter_notes import seen_note
from console.lists import ListPage
from console.live import render_live
from console.own_filters import OwnLetterFilter
from console.payloads import show_headers, show_payload
from console.views import dead_letters
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterEdit
from queueapi.selectors.dead_letters import COUNTED, headers_told, letters_for_lists
from queueapi.selectors.message_types import form_of_queue


class OwnLetterList(dead_letters.LetterList):
    template_name = "own/letters.html"
    filter_class = OwnLetterFilter

    @cached_property
    def filters(self) -> OwnLetterFilter:
        return OwnLetterFilter(self.request.GET, request=self.request)

    def all_rows(self) -> QuerySet[Any]:
        return seen(self.request, letters_for_lists())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Without groups, and what is quarantined: both tell of others' letters."""
        wanted = self.filters.wanted
        is_decided = wanted.state in (LetterState.DISCARDED, LetterState.REPLAYING)
        return ListPage.get_context_data(
            self,
            **kwargs,
            replay=self.replay(),
            letters=self._letters(),
            most_pages=COUNTED,
            searched=self.searched(),
            selectable=wanted.state if is_decided else LetterState.OPEN,
        )


@require_safe
def show_letter(request: HttpRequest, pk: UUID) -> HttpResponse:
    joined = ("queue__tenant", "tenant", "replay_of", "decision", "body")
    letter = get_object_or_404(seen(request, DeadLetter.objects.select_related(*joined)), pk=pk)
    edit = DeadLetterEdit.objects.filter(letter=letter).first() if letter.is_edited else None
    message_form = form_of_queue(letter.queue)
    context = {
        "letter": letter,
        "seen_note": seen_note(letter),
        "failed_replays": list(letter.failed_replays.order_by("failed_at").only("id", "failed_at", "state")),
        "why_not_replayable": dead_letters.WHY_NOT_REPLAYABLE.get(letter.state_choice, ""),
        "payload": show_payload(bytes(letter.body.payload), message_form),
        "headers": show_headers(headers_told(letter.body.headers)),
        "edited_payload": show_payload(bytes(edit.payload), message_form) if edit else None,
    }
    is_final = letter.state != LetterState.REPLAYING
    return render_live(request, "own/letter.html", "own/letter_live.html", context, is_final=is_final)


@require_POST
def write_note(request: HttpRequest, pk: UUID) -> HttpResponse:
    _known(request, pk)
    return dead_letters.write_note(request, pk)


@require_safe
def download_payload(request: HttpRequest, pk: UUID) -> HttpResponse:
    _known(request, pk)
    return dead_letters.download_payload(request, pk)


def _known(request: HttpRequest, pk: UUID) -> None:
    """Http404 for what is another's."""
    get_object_or_404(seen(request, DeadLetter.objects.only("pk")), pk=pk)
