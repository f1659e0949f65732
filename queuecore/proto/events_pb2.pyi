from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("version", "at_ms", "service_id", "offset_sample", "request_sample", "consumed_sample", "sent_sample")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    CONSUMED_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    SENT_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    version: int
    at_ms: int
    service_id: str
    offset_sample: OffsetSample
    request_sample: RequestSample
    consumed_sample: ConsumedSample
    sent_sample: SentSample
    def __init__(self, version: _Optional[int] = ..., at_ms: _Optional[int] = ..., service_id: _Optional[str] = ..., offset_sample: _Optional[_Union[OffsetSample, _Mapping]] = ..., request_sample: _Optional[_Union[RequestSample, _Mapping]] = ..., consumed_sample: _Optional[_Union[ConsumedSample, _Mapping]] = ..., sent_sample: _Optional[_Union[SentSample, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("request_topic", "interval_ms", "pending", "pending_limit", "pending_memory_bytes", "oldest_pending_ms", "sent", "answered", "failed", "timed_out", "not_stored", "cancelled", "refused", "late", "orphans", "lag_bounds_ms", "lag_buckets", "lag_total_ms", "age_buckets")
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
    AGE_BUCKETS_FIELD_NUMBER: _ClassVar[int]
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
    age_buckets: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, request_topic: _Optional[str] = ..., interval_ms: _Optional[int] = ..., pending: _Optional[int] = ..., pending_limit: _Optional[int] = ..., pending_memory_bytes: _Optional[int] = ..., oldest_pending_ms: _Optional[int] = ..., sent: _Optional[int] = ..., answered: _Optional[int] = ..., failed: _Optional[int] = ..., timed_out: _Optional[int] = ..., not_stored: _Optional[int] = ..., cancelled: _Optional[int] = ..., refused: _Optional[int] = ..., late: _Optional[int] = ..., orphans: _Optional[int] = ..., lag_bounds_ms: _Optional[_Iterable[int]] = ..., lag_buckets: _Optional[_Iterable[int]] = ..., lag_total_ms: _Optional[float] = ..., age_buckets: _Optional[_Iterable[int]] = ...) -> None: ...

class ConsumedSample(_message.Message):
    __slots__ = ("queue_id", "partition", "topic", "group", "interval_ms", "polled", "polled_bytes", "packs", "commits", "succeeded", "failed", "timed_out", "retried", "handled", "dead_lettered", "dropped", "processing_bounds_ms", "processing_buckets", "processing_total_ms", "tenants", "entities", "letters")
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    POLLED_FIELD_NUMBER: _ClassVar[int]
    POLLED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PACKS_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    RETRIED_FIELD_NUMBER: _ClassVar[int]
    HANDLED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    PROCESSING_BOUNDS_MS_FIELD_NUMBER: _ClassVar[int]
    PROCESSING_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    PROCESSING_TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    LETTERS_FIELD_NUMBER: _ClassVar[int]
    queue_id: str
    partition: int
    topic: str
    group: str
    interval_ms: int
    polled: int
    polled_bytes: int
    packs: int
    commits: int
    succeeded: int
    failed: int
    timed_out: int
    retried: int
    handled: int
    dead_lettered: int
    dropped: int
    processing_bounds_ms: _containers.RepeatedScalarFieldContainer[float]
    processing_buckets: _containers.RepeatedScalarFieldContainer[int]
    processing_total_ms: float
    tenants: _containers.RepeatedCompositeFieldContainer[TenantShare]
    entities: _containers.RepeatedCompositeFieldContainer[EntityShare]
    letters: _containers.RepeatedCompositeFieldContainer[LetterShare]
    def __init__(self, queue_id: _Optional[str] = ..., partition: _Optional[int] = ..., topic: _Optional[str] = ..., group: _Optional[str] = ..., interval_ms: _Optional[int] = ..., polled: _Optional[int] = ..., polled_bytes: _Optional[int] = ..., packs: _Optional[int] = ..., commits: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., timed_out: _Optional[int] = ..., retried: _Optional[int] = ..., handled: _Optional[int] = ..., dead_lettered: _Optional[int] = ..., dropped: _Optional[int] = ..., processing_bounds_ms: _Optional[_Iterable[float]] = ..., processing_buckets: _Optional[_Iterable[int]] = ..., processing_total_ms: _Optional[float] = ..., tenants: _Optional[_Iterable[_Union[TenantShare, _Mapping]]] = ..., entities: _Optional[_Iterable[_Union[EntityShare, _Mapping]]] = ..., letters: _Optional[_Iterable[_Union[LetterShare, _Mapping]]] = ...) -> None: ...

class SentSample(_message.Message):
    __slots__ = ("topic", "partition", "interval_ms", "sent", "sent_bytes", "failed", "tenants")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    interval_ms: int
    sent: int
    sent_bytes: int
    failed: int
    tenants: _containers.RepeatedCompositeFieldContainer[TenantShare]
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., interval_ms: _Optional[int] = ..., sent: _Optional[int] = ..., sent_bytes: _Optional[int] = ..., failed: _Optional[int] = ..., tenants: _Optional[_Iterable[_Union[TenantShare, _Mapping]]] = ...) -> None: ...

class TenantShare(_message.Message):
    __slots__ = ("tenant_id", "messages", "bytes", "errors", "dead_letters")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    messages: int
    bytes: int
    errors: int
    dead_letters: int
    def __init__(self, tenant_id: _Optional[str] = ..., messages: _Optional[int] = ..., bytes: _Optional[int] = ..., errors: _Optional[int] = ..., dead_letters: _Optional[int] = ...) -> None: ...

class EntityShare(_message.Message):
    __slots__ = ("key", "is_uuid", "tenant_id", "messages")
    KEY_FIELD_NUMBER: _ClassVar[int]
    IS_UUID_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    is_uuid: bool
    tenant_id: str
    messages: int
    def __init__(self, key: _Optional[bytes] = ..., is_uuid: _Optional[bool] = ..., tenant_id: _Optional[str] = ..., messages: _Optional[int] = ...) -> None: ...

class LetterShare(_message.Message):
    __slots__ = ("fingerprint", "tenant_id", "letters")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    LETTERS_FIELD_NUMBER: _ClassVar[int]
    fingerprint: str
    tenant_id: str
    letters: int
    def __init__(self, fingerprint: _Optional[str] = ..., tenant_id: _Optional[str] = ..., letters: _Optional[int] = ...) -> None: ...
