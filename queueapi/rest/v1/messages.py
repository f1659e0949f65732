"""Messages of a queue over REST: browse, look at one, follow, publish many."""

from collections.abc import Callable
from typing import Any, Final

from django.http import Http404, HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from queueapi.access.tenancy import visible
from queueapi.actions.message_batches import plan_batch, publish_batch
from queueapi.actions.messages import PublishedMessage
from queueapi.errors import InvalidInput
from queueapi.models import Queue, Tenant
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer, is_dry_run, plans_itself
from queueapi.rest.conventions.idempotency import leaves_the_database
from queueapi.rest.permissions import requester_of
from queueapi.rest.tailing import open_tail
from queueapi.rest.v1 import message_serializers as wire
from queueapi.rest.v1.message_batches import Senders, read_batch
from queueapi.rest.v1.problem_schema import refusals
from queueapi.selectors.message_scans import partitions_for, read_message, scan_messages
from queueapi.selectors.message_shapes import WHOLE_BYTES, MessageShaper, PayloadForm
from queueapi.selectors.message_types import form_of_queue
from queuecore.errors import QueueError
from queuecore.messagetypes import MessageForm

ENCODE_AS: Final = OpenApiParameter(
    "as",
    str,
    enum=["json"],
    description="`json`: encode each `payload` as the queue's message type says. Without, JSON is stored as it is.",
)
_BATCH: Final = OpenApiExample(
    "Two messages of one entity",
    {
        "messages": [
            {
                "tenant": "13814000-1dd2-11b2-8080-808080808080",
                "entity": "784f394c-42b6-435a-983c-b7beff2784f9",
                "payload": {"temperature": temperature},
            }
            for temperature in (21, 22)
        ]
    },
    request_only=True,
)
_ASKED: Final = {400: "`invalid_input`: see `detail` and `errors`.", 404: "`not_found`: there is no such queue."}
_WRONG: Final = {
    400: "`invalid_input`: nothing was sent. `errors.messages` says for each, by its index, what is wrong.",
    404: "`not_found`: there is no such queue.",
    413: "`payload_too_large`: the whole body is; send fewer at once.",
}


class EventStreamRenderer(JSONRenderer):
    """Browsers ask for events by this name. What is refused is told as JSON all the same."""

    media_type = "text/event-stream"


class BytesRenderer(JSONRenderer):
    """For who asks for bytes by this name."""

    media_type = "application/octet-stream"


class MessageRoutes:
    """What a view set of queues can do with messages. It looks up the queue, as its callers may see it."""

    get_object: Callable[..., Queue]

    @extend_schema(
        operation_id="queues_messages_browse",
        summary="Browse messages",
        parameters=[wire.MessageQuerySerializer],
        request=None,
        responses={200: wire.StoredMessagePageSerializer, **refusals(_ASKED)},
    )
    def browse_messages(self, request: Request, **_: Any) -> Response:
        """By partition and offset, time, entity or tenant, newest first or oldest first. One call looks at so many
        messages and bytes, and for so long, and says how far it got; `next` goes on there. No group is joined."""
        queue = self.get_object()
        asked = wire.MessageQuerySerializer(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        scan = scan_messages(queue, asked.query())
        shaper = MessageShaper(asked.form, asked.validated_data["preview_bytes"], decoding_form(queue, asked.form))
        results = [shaper.show(partition, record) for partition, record in scan.found]
        url = replace_query_param(request.build_absolute_uri(), "cursor", wire.cursor_of(scan.reaches))
        told = {
            "results": results,
            "scanned": scan.scanned,
            "scanned_bytes": scan.scanned_bytes,
            "stopped_by": scan.stopped_by,
            "complete": scan.complete,
            "partitions": scan.reaches,
            "next": None if scan.complete else url,
        }
        # A page, and no thing.
        return Response(dict(wire.StoredMessagePageSerializer(told).data))

    @extend_schema(
        operation_id="queues_messages_retrieve",
        summary="Look at one message",
        parameters=[
            wire.OneMessageQuerySerializer,
            OpenApiParameter("partition", int, OpenApiParameter.PATH),
            OpenApiParameter("offset", int, OpenApiParameter.PATH),
        ],
        responses={
            (200, "application/json"): wire.StoredMessageSerializer,
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            **refusals({404: "`not_found`: there is no such message, not yet or no longer."}),
        },
    )
    @action(
        detail=True,
        url_path=r"messages/(?P<partition>[0-9]{1,9})/(?P<offset>[0-9]{1,18})",
        url_name="message",
        renderer_classes=[JSONRenderer, BytesRenderer],
    )
    def message(self, request: Request, partition: str, offset: str, **_: Any) -> HttpResponse:
        """All of it; with `raw`, its payload as bytes."""
        queue = self.get_object()
        asked = wire.OneMessageQuerySerializer(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        if (record := read_message(queue, int(partition), int(offset))) is None:
            raise Http404
        if asked.validated_data["raw"]:
            return as_download(record.data, f"{queue.name}-{partition}-{offset}.bin")
        shaper = MessageShaper(asked.form, WHOLE_BYTES, decoding_form(queue, asked.form))
        return Response(wire.StoredMessageSerializer(shaper.show(int(partition), record)).data)

    @extend_schema(
        operation_id="queues_messages_tail",
        summary="Follow messages",
        parameters=[wire.TailQuerySerializer],
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            **refusals({**_ASKED, 429: "`too_many_tails`: as many follow as may; end one of them."}),
        },
    )
    @action(
        detail=True, url_path="messages/tail", url_name="tail", renderer_classes=[JSONRenderer, EventStreamRenderer]
    )
    def tail(self, request: Request, **_: Any) -> StreamingHttpResponse:
        """What is published from now on, as server-sent events: `message` with a message, `skipped` with how many were
        passed over where more came than `rate`, and `end` after `seconds`. No group is joined."""
        queue = self.get_object()
        asked = wire.TailQuerySerializer(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        query = asked.query()
        shaper = MessageShaper(asked.form, asked.validated_data["preview_bytes"], decoding_form(queue, asked.form))
        partitions = partitions_for(queue, query)
        return open_tail(queue, partitions, query, shaper, asked.options())

    @extend_schema(
        operation_id="queues_messages_batch",
        summary="Publish many messages",
        parameters=[ENCODE_AS],
        request=wire.BatchRequestSerializer,
        responses={201: wire.BatchSerializer, 207: wire.BatchSerializer, **refusals(_WRONG)},
        examples=[_BATCH],
    )
    @action(detail=True, methods=["post"], url_path="messages/batch", url_name="batch")
    @plans_itself(ChangePlanSerializer)
    @leaves_the_database
    def batch(self, request: Request, **_: Any) -> Response:
        """Up to 500. All are checked before any is sent; then all are sent, and waited for together. 201 where each was
        stored, 207 where the provider refused some: each result says which. With `dry_run`, where each would go."""
        queue = self.get_object()
        requester = requester_of(request)
        senders = Senders(visible(requester, Tenant.objects.all()), requester.tenant_id)
        messages = read_batch(queue, request, encoding_form(queue, request), senders)
        if is_dry_run(request):
            return Response(ChangePlanSerializer(plan_batch(queue, messages)).data)
        outcomes = publish_batch(queue, messages)
        failed = sum(isinstance(outcome, QueueError) for outcome in outcomes)
        told = {"stored": len(outcomes) - failed, "failed": failed, "results": [_told(one) for one in outcomes]}
        return Response(told, status=status.HTTP_207_MULTI_STATUS if failed else status.HTTP_201_CREATED)


def decoding_form(queue: Queue, wanted: PayloadForm) -> MessageForm | None:
    """InvalidInput where protobuf is asked for, and nobody said which message the queue carries."""
    if wanted not in (PayloadForm.AUTO, PayloadForm.PROTOBUF):
        return None
    found = form_of_queue(queue)
    if found is None and wanted is PayloadForm.PROTOBUF:
        raise _typeless(queue)
    return found


def encoding_form(queue: Queue, request: Request) -> MessageForm | None:
    """By what JSON is to be encoded; None where it is to be stored as it is. InvalidInput likewise."""
    wanted = request.query_params.get("as", "")
    if wanted not in ("", "json"):
        raise InvalidInput(f"as: there is no {wanted[:20]!r}; use json, or leave it out")
    if not wanted:
        return None
    if (found := form_of_queue(queue)) is None:
        raise _typeless(queue)
    return found


def as_download(data: bytes, name: str) -> HttpResponse:
    """Anybody's bytes: to be saved, never to be shown as a page of ours."""
    response = HttpResponse(data, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def _typeless(queue: Queue) -> InvalidInput:
    return InvalidInput(f"as: nobody said which message queue {queue.name} carries; enter that under message-types")


def _told(outcome: PublishedMessage | QueueError) -> dict[str, Any]:
    if isinstance(outcome, PublishedMessage):
        return {
            "topic": outcome.topic,
            "partition": outcome.partition,
            "offset": outcome.offset,
            "timestamp_ms": outcome.timestamp_ms,
        }
    return {"error": {"code": outcome.code, "detail": outcome.message, "retryable": outcome.retryable}}
