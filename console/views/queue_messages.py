"""A queue's messages: looked for with bounded work, and published."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.forms import PublishForm
from console.message_forms import MessageForm
from queueapi.actions.messages import publish_message
from queueapi.errors import ActionError
from queueapi.models import Queue
from queueapi.rest.v1.message_serializers import cursor_of
from queueapi.rest.v1.messages import decoding_form
from queueapi.selectors.message_scans import scan_messages
from queueapi.selectors.message_shapes import MessageShaper
from queueapi.selectors.message_types import form_of_queue
from queuecore.errors import QueueError


@require_http_methods(["GET", "HEAD", "POST"])
def show_messages(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What the address asks for; a POST publishes, and shows the form again with what was typed if refused."""
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    message_form = form_of_queue(queue)
    if request.method == "POST":
        form = PublishForm(queue, request.POST, message_form=message_form)
        return _publish(request, queue, form) or _page(request, queue, form)
    initial: dict[str, Any] = {"tenant": request.GET.get("published_for", queue.tenant_id)}
    if "published" in request.GET:
        initial["entity"] = request.GET["published"]
    return _page(request, queue, PublishForm(queue, initial=initial, message_form=message_form))


def _page(request: HttpRequest, queue: Queue, publish_form: PublishForm) -> HttpResponse:
    # Both forms of the page have a tenant and an entity.
    asked = MessageForm(queue, {} if request.method == "POST" else request.GET, auto_id="asked_%s")
    context = {"queue": queue, "tab": "messages", "form": publish_form, "asked": asked}
    return render(request, "queues/messages.html", {**context, **_found(request, queue, asked)})


def _found(request: HttpRequest, queue: Queue, asked: MessageForm) -> dict[str, Any]:
    if not asked.is_valid():
        return {}
    try:
        shaper = MessageShaper(asked.form, message_form=decoding_form(queue, asked.form))
        scan = scan_messages(queue, asked.query)
    except (ActionError, QueueError) as error:
        return {"refused": error.message}
    further = request.GET.copy()
    further["cursor"] = cursor_of(scan.reaches)
    return {
        "scan": scan,
        "found": [shaper.show(partition, record) for partition, record in scan.found],
        "next": "" if scan.complete else f"?{further.urlencode()}",
    }


def _publish(request: HttpRequest, queue: Queue, form: PublishForm) -> HttpResponse | None:
    """Where the stored message is told about, or None where the form says what is wrong."""
    if not form.is_valid():
        return None
    tenant, entity = form.cleaned_data["tenant"], form.cleaned_data["entity"]
    try:
        stored = publish_message(queue, tenant, entity, form.cleaned_data["data"])
    except QueueError as error:
        form.add_error(None, f"Not published: {error.message}")
        return None
    where = f"topic {stored.topic}, partition {stored.partition}, offset {stored.offset:,}"
    messages.success(request, f"Published: stored in {where}.")
    again = urlencode({"published_for": tenant.pk, "published": entity})
    return redirect(f"{reverse('queue_messages', args=[queue.pk])}?{again}#publish")
