"""Lag and the pipeline's freshness, for Prometheus."""

from itertools import chain

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from queueapi.access.table import READ, Resource
from queueapi.config import config
from queueapi.lag_metrics import CONTENT_TYPE, lag_metrics, pipeline_metrics, stale_metrics
from queueapi.models import LagCurrent
from queueapi.rest.exporting import flowing
from queueapi.rest.permissions import Access, requester_of
from queueapi.rest.tenancy import seen_by
from queueapi.selectors.pipeline_standing import pipeline_state


class PlainTextRenderer(JSONRenderer):
    """For who asks for text. What is refused is told as JSON all the same."""

    media_type = "text/plain"


class MetricsView(APIView):
    """Of the queues that whoever asks may see: a token with `lag:read` is enough, and a tenant's for the tenant's own.
    How the installation is, its pipeline above all, needs `pipeline:read`."""

    access = Access(Resource.LAG)
    renderer_classes = (JSONRenderer, PlainTextRenderer)
    schema = None

    def get(self, request: Request) -> StreamingHttpResponse:
        """What is little is asked for before anything is answered: a database that is away is no half an answer."""
        whole = [*pipeline_metrics(pipeline_state()), *stale_metrics()] if _may_see_whole(request) else []
        lag = lag_metrics(seen_by(self, LagCurrent.objects.all()), config().metrics_lag_by)
        return StreamingHttpResponse(
            flowing(request, chain(whole, lag)), content_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"}
        )


def _may_see_whole(request: Request) -> bool:
    return requester_of(request).may(READ, Resource.PIPELINE)
