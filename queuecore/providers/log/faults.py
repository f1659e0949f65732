"""What makes a message impossible to store."""

import struct
from collections.abc import Sequence

from queuecore.errors import InvalidMessage, PayloadTooLarge, QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log.batch import EncodedBody, encode_body
from queuecore.providers.options import ProducerOptions

_UNENCODABLE = (struct.error, TypeError, ValueError, AttributeError, OverflowError)


def encode_if_sound(messages: Sequence[QueueMessage], spec: TopicSpec, options: ProducerOptions) -> EncodedBody | None:
    """The messages as one batch, or None where one of them may not be stored. Looks at all of them at once: a batch
    that fits holds no message that does not."""
    try:
        body = encode_body(messages, options.compression)
    except _UNENCODABLE:
        return None
    if spec.is_compacted and any(message.key is None for message in messages):
        return None
    if body.raw_size > options.max_request_size:
        return body if all(find_fault(message, spec, options) is None for message in messages) else None
    return body


def find_fault(message: QueueMessage, spec: TopicSpec, options: ProducerOptions) -> QueueError | None:
    if spec.is_compacted and message.key is None:
        return InvalidMessage("a compacted topic keeps the last message of each key; give the message a key")
    try:
        size = encode_body([message]).raw_size
    except _UNENCODABLE as error:
        return InvalidMessage(f"the message cannot be encoded: {error}; mend its key, headers or data")
    limit = options.max_request_size
    if size <= limit:
        return None
    what = f"the message has {size} bytes with key and headers; {limit} is the most"
    return PayloadTooLarge(what, size=size, limit=limit)
