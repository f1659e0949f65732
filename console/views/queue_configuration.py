"""How a queue is set, what that means, and who changed it."""

from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from console.audit_changes import audited
from console.strategies import picture_of, processing_pictures, submit_pictures
from queueapi.config import config
from queueapi.handler_options import shown_options
from queueapi.models import Queue
from queueapi.selectors.tenants import recent_audit
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType

_CHANGES_SHOWN: Final = 50


@require_safe
def show_configuration(request: HttpRequest, pk: UUID) -> HttpResponse:
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    submit = SubmitStrategyType(queue.submit_strategy)
    processing = ProcessingStrategyType(queue.processing_strategy)
    context = {
        "queue": queue,
        "tab": "configuration",
        "options": shown_options(queue),
        "hash_function": config().queue.partitions.hash_function_name,
        "picture": picture_of(submit, processing),
        "submit_pictures": submit_pictures(submit, processing),
        "processing_pictures": processing_pictures(submit, processing),
        "history": audited(request, recent_audit("queue", queue.pk, _CHANGES_SHOWN)),
    }
    return render(request, "queues/configuration.html", context)
