"""Deleting committed offsets: the one request the library's C half has and its Python half lacks.

So it is made of the C half, with a client of its own. What is called here is librdkafka's public interface, which
keeps its shape from release to release; the shared object is the one confluent_kafka has loaded.
"""

import ctypes
from collections.abc import Collection
from contextlib import ExitStack
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, Final

from confluent_kafka import KafkaError, cimpl

from queuecore.errors import ConfigurationError, NotSupported
from queuecore.providers.kafka.codes import NO_SUCH_GROUP, NO_SUCH_TOPIC, TIMED_OUT
from queuecore.providers.kafka.connection import Connection
from queuecore.topics import ProviderPartition

_PRODUCER: Final = 0
_REASON_BYTES: Final = 512
_SLACK_MS: Final = 1_000
# Where there is nothing to forget.
_FINE: Final = frozenset({NO_SUCH_GROUP, NO_SUCH_TOPIC})


class _Partition(ctypes.Structure):
    _fields_ = [
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_void_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("error", c_int),
        ("private", c_void_p),
    ]


class _Partitions(ctypes.Structure):
    _fields_ = [("count", c_int), ("capacity", c_int), ("items", POINTER(_Partition))]


_List = POINTER(_Partitions)
# Name: (answer, arguments). An int that is an error code is 0 when all is well.
_FUNCTIONS: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "conf_new": (c_void_p, ()),
    "conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "conf_destroy": (None, (c_void_p,)),
    "new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "destroy": (None, (c_void_p,)),
    "queue_new": (c_void_p, (c_void_p,)),
    "queue_poll": (c_void_p, (c_void_p, c_int)),
    "queue_destroy": (None, (c_void_p,)),
    "topic_partition_list_new": (_List, (c_int,)),
    "topic_partition_list_add": (POINTER(_Partition), (_List, c_char_p, c_int32)),
    "topic_partition_list_destroy": (None, (_List,)),
    "DeleteConsumerGroupOffsets_new": (c_void_p, (c_char_p, _List)),
    "DeleteConsumerGroupOffsets": (None, (c_void_p, POINTER(c_void_p), c_size_t, c_void_p, c_void_p)),
    "DeleteConsumerGroupOffsets_destroy": (None, (c_void_p,)),
    "DeleteConsumerGroupOffsets_result_groups": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "event_DeleteConsumerGroupOffsets_result": (c_void_p, (c_void_p,)),
    "event_error": (c_int, (c_void_p,)),
    "event_destroy": (None, (c_void_p,)),
    "group_result_error": (c_void_p, (c_void_p,)),
    "group_result_partitions": (_List, (c_void_p,)),
    "error_code": (c_int, (c_void_p,)),
}


def forget_offsets(connection: Connection, group: str, places: Collection[ProviderPartition]) -> None:
    """Delete what the group committed for these partitions. GroupActive while a member subscribes to their topics."""
    rd_kafka = _library()
    with ExitStack() as cleanup:
        client = _client(rd_kafka, connection)
        cleanup.callback(rd_kafka["destroy"], client)
        queue = rd_kafka["queue_new"](client)
        cleanup.callback(rd_kafka["queue_destroy"], queue)
        partitions = rd_kafka["topic_partition_list_new"](len(places))
        cleanup.callback(rd_kafka["topic_partition_list_destroy"], partitions)
        for place in places:
            rd_kafka["topic_partition_list_add"](partitions, place.topic.encode(), place.partition)
        request = c_void_p(rd_kafka["DeleteConsumerGroupOffsets_new"](group.encode(), partitions))
        cleanup.callback(rd_kafka["DeleteConsumerGroupOffsets_destroy"], request)
        rd_kafka["DeleteConsumerGroupOffsets"](client, byref(request), 1, None, queue)
        # The library gives up by itself after the connection's time.
        event = rd_kafka["queue_poll"](queue, connection.options.request_timeout_ms + _SLACK_MS)
        if event is not None:
            cleanup.callback(rd_kafka["event_destroy"], event)
        codes = [TIMED_OUT] if event is None else _codes(rd_kafka, event)
    for code in codes:
        if code and code not in _FINE:
            raise connection.explain(KafkaError(code), f"delete offsets of group {group}")


@cache
def _library() -> dict[str, Any]:
    """The functions, each with its types declared."""
    shared = ctypes.CDLL(cimpl.__file__)
    functions = {}
    for name, (answer, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(shared, f"rd_kafka_{name}")
        except AttributeError:
            raise NotSupported(
                f"this build of confluent_kafka hides rd_kafka_{name}, so offsets cannot be deleted; install its wheel"
            ) from None
        function.restype, function.argtypes = answer, arguments
        functions[name] = function
    return functions


def _client(rd_kafka: dict[str, Any], connection: Connection) -> int:
    settings, reason = rd_kafka["conf_new"](), ctypes.create_string_buffer(_REASON_BYTES)
    # What goes wrong is told by the answer; the client has no logger of ours.
    for name, value in {**connection.settings(), "log_level": 0}.items():
        if rd_kafka["conf_set"](settings, name.encode(), str(value).encode(), reason, _REASON_BYTES):
            rd_kafka["conf_destroy"](settings)
            raise ConfigurationError(f"Kafka's client refuses {name}: {reason.value.decode()}; change the setting")
    client: int | None = rd_kafka["new"](_PRODUCER, settings, reason, _REASON_BYTES)
    if client is None:
        rd_kafka["conf_destroy"](settings)
        raise ConfigurationError(f"Kafka's client refuses its settings: {reason.value.decode()}; change the setting")
    return client


def _codes(rd_kafka: dict[str, Any], event: int) -> list[int]:
    """How the request, the group and each partition fared."""
    if code := rd_kafka["event_error"](event):
        return [code]
    count = c_size_t()
    result = rd_kafka["event_DeleteConsumerGroupOffsets_result"](event)
    groups = rd_kafka["DeleteConsumerGroupOffsets_result_groups"](result, byref(count))
    codes: list[int] = []
    for group in groups[: count.value]:
        if (error := rd_kafka["group_result_error"](group)) is not None:
            codes.append(rd_kafka["error_code"](error))
            continue
        answered = rd_kafka["group_result_partitions"](group).contents
        codes += [one.error for one in answered.items[: answered.count]]
    return codes
