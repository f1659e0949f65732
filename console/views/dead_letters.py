from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from console.access import actor_of
from console.filters import LetterFilter
from console.lists import ListPage, Sort
from console.live import render_live
from console.payloads import show_headers, show_payload
from queueapi.actions.dead_letters import replay_letters
from queueapi.choices import LetterState
from queueapi.errors import ActionError
from queueapi.models import DeadLetter
from queueapi.selectors.dead_letters import letters_for_lists, open_letter_groups, replay_plan

WHY_NOT_REPLAYABLE = {
    LetterState.REPLAYING: "It is being replayed right now.",
    LetterState.REPLAYED: "It was replayed, and its handler succeeded.",
    LetterState.FAILED_AGAIN: "Its replay failed and became a letter of its own: replay that one.",
    LetterState.DISCARDED: "It was discarded.",
}


class LetterList(ListPage):
    template_name = "dead_letters/list.html"
    filter_class = LetterFilter
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

    def all_rows(self) -> QuerySet[Any]:
        return letters_for_lists()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, groups=open_letter_groups())


def show_letter(request: HttpRequest, pk: UUID) -> HttpResponse:
    letter = get_object_or_404(
        DeadLetter.objects.select_related("queue__tenant", "tenant", "replay", "replay_of"), pk=pk
    )
    context = {
        "letter": letter,
        "failed_replays": list(letter.failed_replays.order_by("failed_at").only("id", "failed_at", "state")),
        "why_not_replayable": WHY_NOT_REPLAYABLE.get(letter.state_choice, ""),
        "payload": show_payload(bytes(letter.payload)),
        "headers": show_headers(letter.headers),
        "raw_key": show_payload(bytes(letter.raw_key)) if letter.raw_key else None,
    }
    is_final = letter.state != LetterState.REPLAYING
    return render_live(request, "dead_letters/page.html", "dead_letters/live.html", context, is_final=is_final)


@require_POST
def replay_letter(request: HttpRequest, pk: UUID) -> HttpResponse:
    letter = get_object_or_404(DeadLetter, pk=pk)
    try:
        replay_letters(actor_of(request), [letter.pk])
    except ActionError as error:
        messages.error(request, f"Not replayed: {error.message}.")
    else:
        messages.success(request, "The replay has started. This page follows it.")
    return redirect("dead_letter", pk=letter.pk)


@require_POST
def replay_selected(request: HttpRequest) -> HttpResponse:
    """First the plan; with `confirm`, the replay."""
    plan = replay_plan(_selected(request))
    back = request.POST.get("back", "")
    if "confirm" in request.POST:
        try:
            operation = replay_letters(actor_of(request), _selected(request))
        except ActionError as error:
            messages.error(request, f"Nothing was replayed: {error.message}. This is the plan as it is now.")
        else:
            return redirect("operation", pk=operation.pk)
    return render(request, "dead_letters/plan.html", {"plan": plan, "back": back if back.startswith("?") else ""})


@require_safe
def download_payload(_request: HttpRequest, pk: UUID) -> HttpResponse:
    """The bytes as they were sent, as a file: never as something a browser would show."""
    letter = get_object_or_404(DeadLetter.objects.only("payload"), pk=pk)
    name = f'attachment; filename="{letter.pk}.bin"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff"}
    return HttpResponse(bytes(letter.payload), content_type="application/octet-stream", headers=headers)


def _selected(request: HttpRequest) -> list[UUID]:
    """What no page of ours would send is left out."""
    chosen = []
    for text in request.POST.getlist("letter"):
        try:
            chosen.append(UUID(text))
        except ValueError:
            continue
    return chosen
