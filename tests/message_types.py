"""A message type for tests, and payloads of it."""

from collections.abc import Iterable

from queueapi.actions.actor import SYSTEM
from queueapi.actions.message_types import Description, create_message_type
from queuecore.messagetypes import MessageForm, compile_sources, load_form

NAME = "shop.Order"
SOURCE = """syntax = "proto3";
package shop;
message Order {
  string id = 1;
  int64 amount = 2;
  repeated Order parts = 3;
}
"""
NEWER = SOURCE.replace("int64 amount = 2;", "int64 amount = 2;\n  string note = 9;")


def make_type(topics: Iterable[str], source: str = SOURCE) -> MessageForm:
    """What the topics carry from now on."""
    description = Description.of({"order.proto": source})
    create_message_type(SYSTEM, name="order", message=NAME, description=description, topics=list(topics))
    return form_of(source)


def form_of(source: str = SOURCE) -> MessageForm:
    return load_form(compile_sources({"order.proto": source}), NAME)


def nested(depth: int) -> bytes:
    """An order in an order, and so on."""
    data = b""
    for _ in range(depth):
        data = b"\x1a" + _size(len(data)) + data
    return data


def _size(number: int) -> bytes:
    """As Protocol Buffers write numbers: seven bits a byte, the lowest first."""
    head = b""
    while number > 127:
        head += bytes([number & 127 | 128])
        number >>= 7
    return head + bytes([number])
