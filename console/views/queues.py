from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console.access import actor_of
from console.filters import QueueFilter
from console.forms import PauseForm, PublishForm
from console.lists import ListPage, Sort
from console.live import render_live
from queueapi.actions.messages import publish_message
from queueapi.actions.pauses import pause_queue, resume_queue
from queueapi.config import config
from queueapi.errors import ActionError
from queueapi.handler_options import shown_options
from queueapi.models import Pause, Queue
from queueapi.selectors.consumers import attempts_by_tenant, consumers_of, pauses_of, refusals_of, unassigned_of
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.queue_operations import DELETE, operation_under_way
from queueapi.selectors.queue_plans import is_main
from queueapi.selectors.queues import figures_of, partition_flows, queues_with_figures
from queuecore.errors import QueueError


class QueueList(ListPage):
    template_name = "queues/list.html"
    filter_class = QueueFilter
    default_sort = Sort("name", descending=False)
    columns = {
        "name": "name",
        "tenant": "tenant__name",
        "partitions": "partitions",
        "lag": "total_lag",
        "produced": "total_produced",
        "consumed": "total_consumed",
        "letters": "open_letters",
    }

    def all_rows(self) -> QuerySet[Any]:
        return queues_with_figures()

    def present(self, rows: Iterable[Any]) -> Iterable[Any]:
        return figures_of(rows)


@require_http_methods(["GET", "HEAD", "POST"])
def show_queue(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The queue's page; a POST publishes a message, and shows the form again with what was typed if refused."""
    queue = get_object_or_404(queues_with_figures(), pk=pk)
    if request.method == "POST":
        form = PublishForm(queue, request.POST)
        return _publish(request, queue, form) or render(request, "queues/page.html", _facts(queue, form=form))
    before = {name: request.GET[name] for name in ("tenant", "entity") if name in request.GET}
    form = PublishForm(queue, initial={"tenant": queue.tenant_id, **before})
    return render_live(request, "queues/page.html", "queues/live.html", _facts(queue, form=form))


@require_POST
def pause(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the queue's page, or its form again with what was typed if refused."""
    queue = get_object_or_404(queues_with_figures(), pk=pk)
    form = PauseForm(queue, request.POST)
    if form.is_valid():
        try:
            paused = pause_queue(actor_of(request), queue, reason=form.cleaned_data["reason"], **form.target)
        except ActionError as error:
            form.add_error(None, f"Not paused: {error.message}")
        else:
            messages.success(request, f"Paused: {paused.what}. Hosts stop handing it over within seconds.")
            return redirect(f"{reverse('queue', args=[queue.pk])}#pauses")
    return render(request, "queues/page.html", _facts(queue, pause_form=form))


@require_POST
def resume(request: HttpRequest, pk: UUID, pause: int) -> HttpResponse:
    """A pause that somebody has lifted meanwhile is what was wanted."""
    queue = get_object_or_404(Queue, pk=pk)
    lifted = Pause.objects.filter(pk=pause, queue=queue).select_related("tenant").first()
    if lifted is not None:
        resume_queue(actor_of(request), queue, tenant=lifted.tenant, partition=lifted.partition)
    messages.success(request, f"Resumed: {lifted.what if lifted else 'it was not paused any more'}.")
    return redirect(f"{reverse('queue', args=[queue.pk])}#pauses")


def _facts(queue: Queue, form: PublishForm | None = None, pause_form: PauseForm | None = None) -> dict[str, Any]:
    consumers = consumers_of(queue)
    tenants, more_tenants = attempts_by_tenant(consumers)
    under_way = operation_under_way(queue)
    return {
        "queue": queue,
        "figures": figures_of([queue])[0],
        "partitions": partition_flows(queue),
        "consumers": consumers,
        "refusals": refusals_of(queue, consumers),
        "unassigned": unassigned_of(queue),
        "tenants": tenants,
        "more_tenants": more_tenants,
        "pauses": list(pauses_of(queue)),
        "options": shown_options(queue),
        "hash_function": config().queue.partitions.hash_function_name,
        "under_way": under_way,
        "deletes": under_way is not None and under_way.kind == DELETE,
        "is_main": is_main(queue),
        "freshness": pipeline_freshness(),
        "form": form or PublishForm(queue, initial={"tenant": queue.tenant_id}),
        "pause_form": pause_form or PauseForm(queue),
    }


def _publish(request: HttpRequest, queue: Queue, form: PublishForm) -> HttpResponse | None:
    """Where the stored message is told about, or None where the form says what is wrong."""
    if not form.is_valid():
        return None
    tenant, entity = form.cleaned_data["tenant"], form.cleaned_data["entity"]
    try:
        stored = publish_message(queue, tenant, entity, form.cleaned_data["payload"].encode())
    except QueueError as error:
        form.add_error(None, f"Not published: {error.message}")
        return None
    where = f"topic {stored.topic}, partition {stored.partition}, offset {stored.offset:,}"
    messages.success(request, f"Published: stored in {where}.")
    again = urlencode({"tenant": tenant.pk, "entity": entity})
    return redirect(f"{reverse('queue', args=[queue.pk])}?{again}#publish")
