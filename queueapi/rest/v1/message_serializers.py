"""Messages on the wire: what may be asked for, and what is told of each."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queueapi.rest.v1.serializers import PublishSerializer
from queueapi.selectors.message_scans import MAX_FOUND, MAX_TEXT, MessageQuery
from queueapi.selectors.message_shapes import MAX_PREVIEW_BYTES, PREVIEW_BYTES, PayloadForm, ShownMessage
from queueapi.selectors.message_tails import TailOptions
from queueapi.selectors.partition_walks import Reach

_FORMS: Final = [(form.value, form.value) for form in PayloadForm]
_FAR: Final = 2**63 - 2
_AS_HELP: Final = "As what payloads are shown. `auto`: the topic's message type, else JSON, else text, else hex."


class FormQuerySerializer(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, Any]:
        # A field cannot be declared by this name: it is a word of Python's.
        return {
            **super().get_fields(),
            "as": serializers.ChoiceField(choices=_FORMS, required=False, default="auto", help_text=_AS_HELP),
        }

    @property
    def form(self) -> PayloadForm:
        return PayloadForm(self.validated_data["as"])


class OneMessageQuerySerializer(FormQuerySerializer):
    raw = serializers.BooleanField(required=False, default=False, help_text="The payload alone, as bytes to be saved.")


class PreviewQuerySerializer(FormQuerySerializer):
    preview_bytes = serializers.IntegerField(
        required=False,
        default=PREVIEW_BYTES,
        min_value=0,
        max_value=MAX_PREVIEW_BYTES,
        help_text=f"How much of each payload is shown, up to {MAX_PREVIEW_BYTES}.",
    )
    partition = serializers.IntegerField(required=False, min_value=0, max_value=_FAR, help_text="Only this one.")
    entity = serializers.UUIDField(required=False, help_text="Only messages with this key; they are in one partition.")
    tenant = serializers.UUIDField(
        required=False,
        help_text="Only messages of this tenant, in the queue as it sees it: a name is its own, then the system's.",
    )


class MessageQuerySerializer(PreviewQuerySerializer):
    order = serializers.ChoiceField(choices=["newest", "oldest"], required=False, default="newest")
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=MAX_FOUND)
    offset = serializers.IntegerField(
        required=False, min_value=0, max_value=_FAR, help_text="Where to begin, in the partition that is named."
    )
    text = serializers.CharField(
        required=False,
        max_length=MAX_TEXT,
        help_text="Only messages with this in their key, headers or payload, in any case.",
    )
    to = serializers.DateTimeField(required=False, help_text="Stored before then: a time with its zone.")
    cursor = serializers.CharField(required=False, help_text="Where to go on: from `next` of the answer before.")

    def get_fields(self) -> dict[str, Any]:
        since = serializers.DateTimeField(required=False, help_text="Stored then or later: a time with its zone.")
        return {**super().get_fields(), "from": since}

    def query(self) -> MessageQuery:
        asked = self.validated_data
        return MessageQuery(
            limit=asked["limit"],
            newest_first=asked["order"] == "newest",
            partition=asked.get("partition"),
            offset=asked.get("offset"),
            from_ms=_millis(asked.get("from")),
            to_ms=_millis(asked.get("to")),
            entity=asked.get("entity"),
            tenant=asked.get("tenant"),
            text=asked.get("text", ""),
            places=places_in(asked["cursor"]) if "cursor" in asked else None,
        )


def cursor_of(reaches: Iterable[Reach]) -> str:
    places = [[reach.partition, reach.next] for reach in reaches]
    return urlsafe_b64encode(json.dumps(places, separators=(",", ":")).encode()).decode()


def places_in(cursor: str) -> dict[int, int | None]:
    """ValidationError for what `cursor_of` did not make."""
    try:
        places = {int(partition): None if at is None else int(at) for partition, at in json.loads(_decoded(cursor))}
        if any(not 0 <= (at or 0) <= _FAR for at in places.values()):
            raise ValueError
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise serializers.ValidationError({"cursor": ["this cursor is none of ours; begin without one"]}) from error
    return places


def _decoded(cursor: str) -> bytes:
    return urlsafe_b64decode(cursor.encode("ascii"))


def _millis(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


class HeaderSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = serializers.CharField()
    form = serializers.ChoiceField(choices=["time", "uuid", "text", "hex"])
    truncated = serializers.BooleanField()


class StoredMessageSerializer(serializers.Serializer[Any]):
    """`payload` is a JSON value where `form` is `protobuf` or `json`, else a text. Truncated, it is a text that stands
    for the first bytes; the message's own address has all of it."""

    partition = serializers.IntegerField(help_text="The queue's.")
    offset = serializers.IntegerField(source="record.offset")
    topic = serializers.CharField(source="record.topic")
    timestamp_ms = serializers.IntegerField(source="record.timestamp_ms")
    timestamp = serializers.DateTimeField(allow_null=True, help_text="`null` for a time that cannot be.")
    key = serializers.CharField(allow_null=True)
    tenant = serializers.CharField(allow_null=True)
    size = serializers.IntegerField(source="record.size", help_text="Of the payload, in bytes.")
    headers = HeaderSerializer(many=True)
    form = serializers.ChoiceField(choices=_FORMS)
    type = serializers.CharField(allow_null=True, help_text="Its protobuf message, where it was decoded by one.")
    payload = serializers.SerializerMethodField()
    payload_truncated = serializers.BooleanField()
    undecodable = serializers.CharField(allow_null=True, help_text="Why it is in another form than the one asked for.")

    @extend_schema_field(OpenApiTypes.ANY)
    def get_payload(self, message: ShownMessage) -> Any:
        return message.payload


class ReachSerializer(serializers.Serializer[Any]):
    partition = serializers.IntegerField()
    beginning = serializers.IntegerField(help_text="The oldest offset there is.")
    end = serializers.IntegerField(help_text="The offset that the next message gets.")
    next = serializers.IntegerField(allow_null=True, help_text="Where to go on; `null`: all was looked at.")


class StoredMessagePageSerializer(serializers.Serializer[Any]):
    results = StoredMessageSerializer(many=True)
    scanned = serializers.IntegerField(help_text="How many messages were looked at, matching or not.")
    scanned_bytes = serializers.IntegerField()
    stopped_by = serializers.ChoiceField(
        choices=["limit", "records", "bytes", "time"],
        allow_null=True,
        help_text="`limit`: as many were found as were asked for; else as much was looked at as one call may.",
    )
    complete = serializers.BooleanField(help_text="There is nothing more to look at, as of now.")
    partitions = ReachSerializer(many=True, help_text="How far was looked in each.")
    next = serializers.URLField(allow_null=True, help_text="Goes on where this one ended.")


class BatchRequestSerializer(serializers.Serializer[Any]):
    """For the schema alone: a batch is read in one pass."""

    messages = PublishSerializer(many=True)


class BatchResultSerializer(serializers.Serializer[Any]):
    """Where it was stored, or `error`."""

    topic = serializers.CharField(required=False)
    partition = serializers.IntegerField(required=False)
    offset = serializers.IntegerField(required=False)
    timestamp_ms = serializers.IntegerField(required=False)
    error = serializers.DictField(required=False, help_text="`code`, `detail`, and whether it is `retryable`.")


class BatchSerializer(serializers.Serializer[Any]):
    stored = serializers.IntegerField()
    failed = serializers.IntegerField()
    results = BatchResultSerializer(many=True, help_text="One for each message, in the order in which they were sent.")


class TailQuerySerializer(PreviewQuerySerializer):
    seconds = serializers.IntegerField(
        required=False, default=60, min_value=1, max_value=600, help_text="How long it lasts at most."
    )
    rate = serializers.IntegerField(
        required=False, default=50, min_value=1, max_value=500, help_text="How many messages a second at most."
    )

    def query(self) -> MessageQuery:
        asked = self.validated_data
        return MessageQuery(
            partition=asked.get("partition"), entity=asked.get("entity"), tenant=asked.get("tenant"), newest_first=False
        )

    def options(self) -> TailOptions:
        return TailOptions(self.validated_data["seconds"], self.validated_data["rate"])
