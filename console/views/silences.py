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
from console.lists import ListPage, Sort
from console.sent_forms import FormOf
from console.templatetags.console import plural
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
    """An empty form, or filled in by the link; a POST shows what it would keep quiet now, and then creates it."""
    sent = FormOf(
        lambda data: SilenceForm(initial=request.GET.dict()) if data is None else SilenceForm(data),
        lambda form: create_silence(
            actor_of(request),
            until=timezone.now() + form.cleaned_data["lasts"],
            reason=form.cleaned_data["reason"],
            **form.matched,
        ),
        "Not created",
    ).sent(request)
    if sent.made is not None:
        messages.success(request, "Created: alerts that match are silent within seconds.")
        return redirect("silences")
    context = {
        "silenced": _silenced(sent.form) if sent.plan else "",
        "queue_names": list(Queue.objects.order_by("name").values_list("name", flat=True).distinct()[:_QUEUES_OFFERED]),
    }
    return sent.show(request, "silences/form.html", context)


def _silenced(form: SilenceForm) -> str:
    number = plural(alerts_matching(**form.matched).count(), "alert that is open,alerts that are open")
    return f"It would silence {number} now, and whatever comes meanwhile"


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
