"""Payloads on the wire as their queue's message type reads them."""

from typing import Any

from rest_framework import serializers

from queueapi.models import Queue
from queueapi.selectors.message_types import form_of_queue
from queueapi.selectors.payload_values import decode_payload
from queuecore.errors import UndecodableMessage
from queuecore.messagetypes.forms import MAX_DECODED_BYTES


class DecodedSerializer(serializers.Serializer[Any]):
    type = serializers.CharField(help_text="The message that the queue carries.")
    payload = serializers.JSONField(allow_null=True, help_text="By the message's fields; null where it does not fit.")
    unnamed_bytes = serializers.IntegerField(help_text="How much are fields that the message type does not name.")
    undecodable = serializers.CharField(allow_null=True, help_text="Why it does not fit.")


def decoded(queue: Queue, data: bytes) -> dict[str, Any] | None:
    """None where nobody said which message the queue carries."""
    if (message_form := form_of_queue(queue)) is None:
        return None
    told = {"type": message_form.name, "payload": None, "unnamed_bytes": 0, "undecodable": None}
    try:
        found = decode_payload(message_form, data, MAX_DECODED_BYTES)
    except UndecodableMessage as error:
        return {**told, "undecodable": error.message}
    return {**told, "payload": found.value, "unnamed_bytes": found.unnamed_bytes}
