"""Create and change a queue: what was typed, then its plan, then the change."""

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from console.access import actor_of
from console.changes import of_field, refuse
from console.plan_digests import digest, is_confirmed, is_to_be_done
from console.queue_configuration_forms import NewQueueForm, QueueForm, shown
from console.queue_edits import Seen, clashes, merged
from console.queue_plans import queue_plan
from console.strategies import chosen_picture
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.config import config
from queueapi.errors import ActionError, ChangedMeanwhile
from queueapi.models import Queue, Tenant
from queuecore.consuming.handler_options import OptionHelp, option_helps
from queuecore.consuming.handlers import find_handler
from queuecore.errors import InvalidName, QueueError

_TENANTS_OFFERED: Final = 200


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """An empty form, for the tenant that a link names; a POST shows what would be, and with `confirm` creates it."""
    if request.method != "POST":
        wanted = {"tenant": request.GET.get("tenant") or ensure_system_tenant()}
        return _show(request, NewQueueForm(initial=wanted))
    form = NewQueueForm(request.POST)
    if form.is_valid():
        tenant, chosen = form.cleaned_data["tenant"], form.chosen()
        planned = digest({"tenant": tenant, **chosen})
        try:
            if is_confirmed(request, planned):
                queue = create_queue(actor_of(request), tenant, **chosen)
                messages.success(request, f"Created: queue {queue.name}. Its topics are made now.")
                return redirect("queue", pk=queue.pk)
            plan = queue_plan(lambda: create_queue(actor_of(request), tenant, **chosen), form, is_new=True)
            return _show(request, form, plan=plan, planned=planned)
        except (ActionError, InvalidName) as error:
            _refuse(form, "Not created", error)
    return _show(request, form)


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: UUID) -> HttpResponse:
    """As `create`, of one that is there. Whoever comes second is shown what others have changed, and nothing is."""
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    if request.method != "POST":
        return _show(request, QueueForm(instance=shown(queue)), queue, seen=Seen.of(queue))
    seen = Seen.read(request.POST.get("seen", ""), queue)
    form = QueueForm(request.POST, instance=shown(queue))
    is_valid = form.is_valid()
    if met := clashes(seen, queue, form):
        both = QueueForm(merged(request.POST, seen, queue, form), instance=shown(queue))
        return _show(request, both, queue, seen=Seen.of(queue), clashes=met, status=409)
    now = replace(seen, version=queue.version)
    return _change(request, queue, form, now) if is_valid else _show(request, form, queue, seen=now)


def _change(request: HttpRequest, queue: Queue, form: QueueForm, seen: Seen) -> HttpResponse:
    edits = seen.edits(form)
    planned = digest({"version": seen.version, **edits})

    def act() -> Queue:
        return change_queue(actor_of(request), queue, seen=seen.version, **edits)

    try:
        if is_confirmed(request, planned):
            act()
            messages.success(request, "Changed. Hosts consume it so within seconds.")
            return redirect("queue_configuration", pk=queue.pk)
        return _show(request, form, queue, seen=seen, plan=queue_plan(act, form), planned=planned)
    except ChangedMeanwhile:
        # In this very moment: the same again, with what is there now.
        return change(request, queue.pk)
    except (ActionError, InvalidName) as error:
        _refuse(form, "Not changed", error)
    return _show(request, form, queue, seen=seen)


@require_safe
def explain(request: HttpRequest) -> HttpResponse:
    """The part of a form that follows what is chosen in it. `prefix` says of which of its queues, where it has several;
    what is left open there is as the address says."""
    told, prefix = request.GET, request.GET.get("prefix", "")
    names = ("submit_strategy", "processing_strategy")
    chosen = (told.get(f"{prefix}-{name}") or told.get(name, "") for name in names)
    return render(request, "queues/strategies.html", {"picture": chosen_picture(*chosen)})


@require_safe
def explain_options(request: HttpRequest) -> HttpResponse:
    """Of the handler that is chosen."""
    handler = request.GET.get("handler", "")
    return render(request, "queues/handler_options.html", {"handler": handler, "helps": _helps(handler)})


def _refuse(form: QueueForm, refusal: str, error: QueueError) -> None:
    """At the field that the message begins with, where it does."""
    told = of_field(error.message)
    if told.keys() & form.fields.keys() and "fields" not in error.fields:
        form.add_error(*next(iter(told.items())))
    else:
        refuse(form, refusal, error)


def _show(
    request: HttpRequest, form: QueueForm, queue: Queue | None = None, *, status: int = 200, **more: Any
) -> HttpResponse:
    names = [] if queue else Tenant.objects.order_by("name").values_list("name", flat=True)[:_TENANTS_OFFERED]
    handler = form.typed("handler")
    context = {
        "form": form,
        "queue": queue,
        "label": "Change" if queue else "Create",
        "leave": "Don't change" if queue else "Don't create",
        "changed": "queue",
        "history": reverse("queue_configuration", args=[queue.pk]) if queue else "",
        "tenant_names": list(names),
        "hash_function": config().queue.partitions.hash_function_name,
        "picture": chosen_picture(form.typed("submit_strategy"), form.typed("processing_strategy")),
        "handler": handler,
        "helps": _helps(handler),
        # Confirmed, and planned again: something was typed in between.
        "is_planned_anew": is_to_be_done(request) and "plan" in more,
        "back": reverse("queue_configuration", args=[queue.pk]) if queue else reverse("queues"),
        **more,
    }
    return render(request, "queues/form.html", context, status=status)


def _helps(handler: str) -> list[OptionHelp]:
    try:
        kind = find_handler(handler).options
    except QueueError:
        return []
    return option_helps(kind) if kind else []
