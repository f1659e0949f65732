from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("version", "at_ms", "service_id", "offset_sample")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    version: int
    at_ms: int
    service_id: str
    offset_sample: OffsetSample
    def __init__(self, version: _Optional[int] = ..., at_ms: _Optional[int] = ..., service_id: _Optional[str] = ..., offset_sample: _Optional[_Union[OffsetSample, _Mapping]] = ...) -> None: ...

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
