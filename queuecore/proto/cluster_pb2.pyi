from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueueRef(_message.Message):
    __slots__ = ("service_type", "queue", "tenant")
    SERVICE_TYPE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    service_type: str
    queue: str
    tenant: str
    def __init__(self, service_type: _Optional[str] = ..., queue: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class ClusterTopologyChange(_message.Message):
    __slots__ = ("sequence", "queues")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    queues: _containers.RepeatedCompositeFieldContainer[QueueRef]
    def __init__(self, sequence: _Optional[int] = ..., queues: _Optional[_Iterable[_Union[QueueRef, _Mapping]]] = ...) -> None: ...

class PartitionChange(_message.Message):
    __slots__ = ("sequence", "service_id", "partitions", "removed")
    class PartitionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    service_id: str
    partitions: _containers.ScalarMap[str, int]
    removed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sequence: _Optional[int] = ..., service_id: _Optional[str] = ..., partitions: _Optional[_Mapping[str, int]] = ..., removed: _Optional[_Iterable[str]] = ...) -> None: ...

class ServiceListChange(_message.Message):
    __slots__ = ("sequence", "current", "others")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    current: str
    others: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sequence: _Optional[int] = ..., current: _Optional[str] = ..., others: _Optional[_Iterable[str]] = ...) -> None: ...
