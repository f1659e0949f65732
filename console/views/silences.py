from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.alert_filters import SilenceFilter
from console.alert_forms import SilenceForm
from console.changes import carried_out
from console.lists import ListPage, Sort
from queueapi.access.table import OPERATE, Resource
from queueapi.actions.silences import create_silence, end_silence
from queueapi.models import Queue, Silence
from queueapi.selectors.silences import alerts_matching, alerts_silenced, silences_for_lists, subject_names

_QUEUES_OFFERED = 100


@dataclass(frozen=True, slots=True)
class SilenceRow:
    """`subject` is what the silence's subject is called, if it names one."""

    silence: Silence
    subject: str


class SilenceList(ListPage):
    template_name = "silences/list.html"
    filter_class = SilenceFilter
    default_sort = Sort("until", descending=True)
    columns = {"until": "until", "created": "created_at", "by": "created_by", "rule": "rule__name"}

    def all_rows(self) -> QuerySet[Any]:
        return silences_for_lists()

    def present(self, rows: Iterable[Any]) -> Iterable[SilenceRow]:
        found = list(rows)
        names = subject_names(row.subject_key for row in found)
        return (SilenceRow(row, names.get(row.subject_key, "")) for row in found)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """An empty form, or filled in by the link; a POST creates the silence, or shows what it would keep quiet now."""
    form = SilenceForm(request.POST) if request.method == "POST" else SilenceForm(initial=request.GET.dict())
    made, plan = carried_out(
        request,
        form,
        lambda: create_silence(
            actor_of(request),
            until=timezone.now() + form.cleaned_data["lasts"],
            reason=form.cleaned_data["reason"],
            **form.matched,
        ),
        "Not created",
    )
    if made is not None:
        messages.success(request, "Created: alerts that match are silent within seconds.")
        return redirect("silences")
    context = {
        "form": form,
        "plan": plan,
        "silenced": alerts_matching(**form.matched).count() if plan else None,
        "queue_names": list(Queue.objects.order_by("name").values_list("name", flat=True).distinct()[:_QUEUES_OFFERED]),
    }
    return render(request, "silences/form.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def end(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would be told again; a POST does it."""
    silence = get_object_or_404(silences_for_lists(), pk=pk)
    if request.method == "POST":
        end_silence(actor_of(request), silence)
        messages.success(request, "Ended: what is still wrong is told within seconds.")
        return redirect("silences")
    number = alerts_silenced(silence).count()
    fire = "1 alert that is open matches it" if number == 1 else f"{number:,} alerts that are open match it"
    context = {
        "verb": "End",
        "thing": f"the silence of {silence.created_by}",
        "headline": fire,
        "consequence": f"It was made because: {silence.reason}. What it keeps quiet and is still wrong is told again.",
        "back": reverse("silences"),
        "back_name": "Silences",
        "leave": "Don't end it",
        "need_verb": OPERATE,
        "need_resource": Resource.SILENCES,
    }
    return render(request, "parts/confirmation.html", context)
