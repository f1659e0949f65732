"""A queue's page of how evenly its messages are spread."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from console.heat_pages import heat_page
from queueapi.models import PartitionHeat, Queue, QueueSkew
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.heat import queue_heat


@require_safe
def show_heat(request: HttpRequest, pk: UUID) -> HttpResponse:
    queue = get_object_or_404(Queue.objects.select_related("tenant"), pk=pk)
    heat = queue_heat(QueueSkew.objects.filter(queue=queue), PartitionHeat.objects.filter(queue=queue))
    context = {"queue": queue, "tab": "heat", "heat": heat_page(queue, heat), "freshness": pipeline_freshness()}
    return render(request, "queues/heat.html", context)
