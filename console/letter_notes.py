"""Notes to letters and their groups: written with one click, and nobody's is lost to another's."""

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from console.access import actor_of, is_told_details
from console.meanwhile import Seen, Thing
from console.sent_forms import FormOf
from queueapi.access.table import Resource
from queueapi.actions.dead_letters import LONGEST_REASON
from queueapi.actions.letter_edits import note_group, note_letter
from queueapi.choices import LedgerAction, LetterState
from queueapi.models import DeadLetter, DeadLetterGroup, LedgerEntry

_ENTRIES_LOOKED_AT: Final = 10

Noted = DeadLetter | DeadLetterGroup


class NoteForm(forms.Form):
    note = forms.CharField(
        required=False, max_length=LONGEST_REASON, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )


def seen_note(noted: Noted) -> str:
    """What the form on a page says of the note that it shows."""
    thing = _thing(noted, is_told_who=False)
    return Seen({"note": noted.note}, thing.version()).signed(thing)


def write_note(request: HttpRequest, noted: Noted) -> HttpResponse:
    """Back to where it was written; or, where it was refused or somebody else has written another meanwhile, a page
    with what was typed and what the other wrote."""
    is_letter = isinstance(noted, DeadLetter)
    act: Any = note_letter if is_letter else note_group
    sent = FormOf(
        lambda data: _form(noted, data),
        lambda form: act(actor_of(request), noted.pk, form.cleaned_data["note"]),
        "Not noted",
        _thing(noted, is_told_who=is_told_details(request)),
        plans=False,
    ).sent(request)
    back = reverse("dead_letter", args=[noted.pk]) if is_letter else _letters_of(noted)
    if sent.made is not None:
        return redirect(back)
    needed = Resource.DEAD_LETTERS if is_letter else Resource.DEAD_LETTER_GROUPS
    return sent.show(request, "dead_letters/note.html", {"back": back, "is_letter": is_letter, "need_resource": needed})


def _form(noted: Noted, data: QueryDict | None) -> NoteForm:
    rows: Any = type(noted).objects
    return NoteForm(data, initial={"note": rows.values_list("note", flat=True).get(pk=noted.pk)})


def _thing(noted: Noted, *, is_told_who: bool) -> Thing:
    named = {"letter_id": noted.pk} if isinstance(noted, DeadLetter) else {"group_id": noted.pk}
    entries = LedgerEntry.objects.filter(action=LedgerAction.NOTE, **named)
    return Thing("note", noted, lambda: entries[:_ENTRIES_LOOKED_AT] if is_told_who else ())


def _letters_of(group: Noted) -> str:
    return f"{reverse('dead_letters')}?state={LetterState.OPEN}&group={group.pk}"
