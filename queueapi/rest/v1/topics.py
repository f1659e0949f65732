"""Topics over REST: what the provider has, and whose it is."""

from functools import partial
from typing import Any, Final

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.named_pages import PAGE_PARAMETERS, page_found, paged
from queueapi.rest.permissions import Access
from queueapi.rest.v1 import topic_serializers as wire
from queueapi.rest.v1.paths import FoundByText
from queueapi.rest.v1.problem_schema import refusals
from queueapi.selectors.topics import find_topic, list_topics, topics_with_figures

_ASKED: Final = {400: "`invalid_input`: see `errors`.", 404: "`not_found`: the cursor is none of ours."}


class TopicViewSet(Conventional, FoundByText, viewsets.ViewSet):
    """By name. A page asks the provider twice, for its names and for what has these, however many topics there are."""

    access = Access(Resource.TOPICS)
    lookup_url_kwarg = "topic"
    # Names have dots.
    lookup_value_regex = "[^/]+"

    @extend_schema(
        operation_id="topics_list",
        summary="List topics",
        parameters=[wire.TopicQuerySerializer, *PAGE_PARAMETERS],
        responses={200: wire.TopicPageSerializer, **refusals(_ASKED)},
    )
    def list(self, request: Request) -> Response:
        """Those of queues and their dead letters, of states, notifications, responses and metrics, and any others that
        the provider has."""
        query = wire.TopicQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        page, following = page_found(request, partial(list_topics, query.filter()))
        return paged(following, wire.TopicSerializer(topics_with_figures(page), many=True).data)

    @extend_schema(
        operation_id="topics_retrieve",
        summary="Look at a topic",
        responses={200: wire.OneTopicSerializer, **refusals({404: "`not_found`: there is no such topic."})},
    )
    def retrieve(self, _: Request, topic: str, **__: Any) -> Response:
        """With each of its partitions: where it begins and ends, its size, and who has copies."""
        if (found := find_topic(topic)) is None:
            raise Http404
        return Response(wire.OneTopicSerializer(found).data)
