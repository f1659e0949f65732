"""Mending a letter's message before it is sent again: what would be sent otherwise first, then the change."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.comparing import Line
from console.edit_forms import MOST_EDITED_BYTES, EditForm, RevertForm, compared
from console.plan_digests import digest
from queueapi.actions.letter_edits import edit_letter, message_of, original_of, revert_letter
from queueapi.actions.replays import replay_letters
from queueapi.choices import LedgerAction, LetterState
from queueapi.errors import ActionError
from queueapi.models import DeadLetter, DeadLetterEdit, LedgerEntry
from queueapi.selectors.message_shapes import PayloadForm
from queueapi.selectors.message_types import form_of_queue
from queuecore.errors import QueueError


@dataclass(frozen=True, slots=True)
class OthersEdit:
    """What somebody else has made of a letter since the form was opened: what its message changes in the original,
    `lines`; or, where it has no `edited_at`, that it is the original again."""

    by: str
    at: datetime
    reason: str
    lines: list[Line]
    edited_at: datetime | None

    @property
    def is_original(self) -> bool:
        return self.edited_at is None


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The form; a POST compares what was typed with the original, or saves what was compared, and replays it."""
    letter = get_object_or_404(DeadLetter.objects.select_related("queue__tenant", "body"), pk=pk)
    if request.method != "POST" and (why_not := _why_not(letter)):
        return render(request, "dead_letters/edit.html", {"letter": letter, "why_not": why_not})
    now, seen = message_of(letter), _edited_at(letter)
    message_form = form_of_queue(letter.queue)
    if request.method == "POST":
        form = EditForm(now, request.POST, message_form=message_form)
    else:
        form = EditForm(now, message_form=message_form, asked=_asked(request))
    is_valid, is_to_be_saved = form.is_valid(), "plan" not in request.POST
    planned = digest(form.message._asdict()) if _is_whole(form) else ""
    is_seen = _is_seen(request.POST, planned)
    if is_valid and is_to_be_saved and is_seen and (done := _save(request, letter, form)):
        return done
    others = _others_edit(letter, form)
    context = {
        "letter": letter,
        "form": form,
        "others": others,
        # Once they were shown what another has made of it, theirs may take its place.
        "seen": _exact(others.edited_at if others else seen),
        "is_edited": seen is not None,
        "why_not": _why_not(letter),
        "lines": compared(original_of(letter), form.message, message_form) if planned else None,
        "planned": planned,
        "is_planned_anew": is_to_be_saved and not is_seen and not others,
    }
    return render(request, "dead_letters/edit.html", context, status=409 if others else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def revert(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would be dropped; a POST drops it, unless somebody has edited the letter once more."""
    letter = get_object_or_404(DeadLetter.objects.select_related("queue__tenant", "body"), pk=pk)
    edit = DeadLetterEdit.objects.filter(letter=letter).first()
    back = reverse("dead_letter", args=[pk])
    if request.method == "POST":
        form = RevertForm(request.POST)
        seen = form.cleaned_data["seen"] if form.is_valid() else None
        try:
            revert_letter(actor_of(request), letter.pk, reason=request.POST.get("reason", ""), seen=seen)
        except ActionError as error:
            messages.error(request, f"The edit was not dropped: {error.message}.")
            return redirect("revert_letter", pk=pk)
        messages.success(request, "A replay sends the original again.")
        return redirect(back)
    context = {
        "letter": letter,
        "edit": edit,
        "lines": compared(message_of(letter), original_of(letter), form_of_queue(letter.queue)) if edit else [],
        "form": RevertForm(initial={"seen": edit and edit.edited_at.isoformat()}),
        "back": back,
    }
    return render(request, "dead_letters/revert.html", context)


def _asked(request: HttpRequest) -> PayloadForm | None:
    """Bytes are typed as they are, though they could be decoded."""
    return PayloadForm.BASE64 if request.GET.get("as") == PayloadForm.BASE64 else None


def _is_seen(posted: Mapping[str, str], planned: str) -> bool:
    """Whether they have seen what it changes."""
    return posted.get("planned", "") == planned


def _save(request: HttpRequest, letter: DeadLetter, form: EditForm) -> HttpResponse | None:
    """Back to the letter; None where it was refused, and the form says why."""
    actor, values = actor_of(request), form.cleaned_data
    try:
        edit_letter(actor, letter.pk, form.message, reason=values["reason"], seen=values["seen"])
        messages.success(request, "Saved: a replay sends the edited message. The original stays as it is.")
        if "replay" in request.POST:
            replay_letters(actor, [letter.pk])
            messages.success(request, "The replay has started. This page follows it.")
    except (ActionError, QueueError) as error:
        # What another has made of it meanwhile is shown, and says more than the refusal.
        if not _others_edit(letter, form):
            form.add_error(None, f"Not saved: {error.message}.")
        return None
    return redirect("dead_letter", pk=letter.pk)


def _others_edit(letter: DeadLetter, form: EditForm) -> OthersEdit | None:
    """None while the letter is as it was when the form was opened."""
    edit = DeadLetterEdit.objects.filter(letter=letter).first()
    if not form.is_bound or form.cleaned_data.get("seen") == (edit and edit.edited_at):
        return None
    told = LedgerEntry.objects.filter(letter_id=letter.pk, action=LedgerAction.EDIT).order_by("-at").first()
    by, at, reason = (told.actor_name, told.at, told.reason) if told else ("Somebody", timezone.now(), "")
    letter.refresh_from_db(fields=["is_edited"])
    lines = compared(original_of(letter), message_of(letter), form_of_queue(letter.queue)) if edit else []
    return OthersEdit(by, at, reason, lines, edit.edited_at if edit else None)


def _edited_at(letter: DeadLetter) -> datetime | None:
    return DeadLetterEdit.objects.filter(letter=letter).values_list("edited_at", flat=True).first()


def _why_not(letter: DeadLetter) -> str:
    if letter.state != LetterState.OPEN:
        return f"Only open letters can be edited; this one is {letter.state_choice.label.lower()}."
    if letter.payload_size > MOST_EDITED_BYTES:
        return (
            f"Its payload has {letter.payload_size:,} bytes, too many to edit here: download it, and send the mended "
            "one over REST (PUT /dead-letters/<id>/message)."
        )
    return ""


def _is_whole(form: EditForm) -> bool:
    """Whether there is a message to compare, whatever else is wrong."""
    return form.is_bound and {"key", "headers", "data"} <= getattr(form, "cleaned_data", {}).keys()


def _exact(at: datetime | None) -> str:
    """To the microsecond: who saves compares."""
    return "" if at is None else at.isoformat()
