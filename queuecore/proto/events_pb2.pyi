from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("version", "at_ms", "service_id", "offset_sample", "request_sample")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    version: int
    at_ms: int
    service_id: str
    offset_sample: OffsetSample
    request_sample: RequestSample
    def __init__(self, version: _Optional[int] = ..., at_ms: _Optional[int] = ..., service_id: _Optional[str] = ..., offset_sample: _Optional[_Union[OffsetSample, _Mapping]] = ..., request_sample: _Optional[_Union[RequestSample, _Mapping]] = ...) -> None: ...

class OffsetSample(_message.Message):
    __slots__ = ("queue_id", "partition", "topic", "group", "beginning_offset", "end_offset", "committed_offset")
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    BEGINNING_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    queue_id: str
    partition: int
    topic: str
    group: str
    beginning_offset: int
    end_offset: int
    committed_offset: int
    def __init__(self, queue_id: _Optional[str] = ..., partition: _Optional[int] = ..., topic: _Optional[str] = ..., group: _Optional[str] = ..., beginning_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., committed_offset: _Optional[int] = ...) -> None: ...

class RequestSample(_message.Message):
    __slots__ = ("request_topic", "interval_ms", "pending", "pending_limit", "pending_memory_bytes", "oldest_pending_ms", "sent", "answered", "failed", "timed_out", "not_stored", "cancelled", "refused", "late", "orphans", "lag_bounds_ms", "lag_buckets", "lag_total_ms")
    REQUEST_TOPIC_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    PENDING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PENDING_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    OLDEST_PENDING_MS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    NOT_STORED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    ORPHANS_FIELD_NUMBER: _ClassVar[int]
    LAG_BOUNDS_MS_FIELD_NUMBER: _ClassVar[int]
    LAG_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    LAG_TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    request_topic: str
    interval_ms: int
    pending: int
    pending_limit: int
    pending_memory_bytes: int
    oldest_pending_ms: int
    sent: int
    answered: int
    failed: int
    timed_out: int
    not_stored: int
    cancelled: int
    refused: int
    late: int
    orphans: int
    lag_bounds_ms: _containers.RepeatedScalarFieldContainer[int]
    lag_buckets: _containers.RepeatedScalarFieldContainer[int]
    lag_total_ms: float
    def __init__(self, request_topic: _Optional[str] = ..., interval_ms: _Optional[int] = ..., pending: _Optional[int] = ..., pending_limit: _Optional[int] = ..., pending_memory_bytes: _Optional[int] = ..., oldest_pending_ms: _Optional[int] = ..., sent: _Optional[int] = ..., answered: _Optional[int] = ..., failed: _Optional[int] = ..., timed_out: _Optional[int] = ..., not_stored: _Optional[int] = ..., cancelled: _Optional[int] = ..., refused: _Optional[int] = ..., late: _Optional[int] = ..., orphans: _Optional[int] = ..., lag_bounds_ms: _Optional[_Iterable[int]] = ..., lag_buckets: _Optional[_Iterable[int]] = ..., lag_total_ms: _Optional[float] = ...) -> None: ...
