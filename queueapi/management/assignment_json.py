"""A cluster as JSON, for `plan_assignment`: read with an error that says what is wrong and where."""

import re
from dataclasses import dataclass
from typing import Any, Final

from queueapi.management.json_values import (
    Fields,
    InvalidInput,
    check_unique,
    parse,
    read_list,
    read_object,
    read_text,
    read_texts,
    read_uuid,
    read_weight,
    read_whole_number,
)
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.errors import ConfigurationError, InvalidName
from queuecore.topics import ServiceType

_KEYS: Final = ("services", "partitions", "current", "assignor")
_SERVICE_KEYS: Final = ("id", "service_id", "service_types", "weight", "labels", "dedicated_to")
_PARTITION_KEYS: Final = ("name", "id", "service_type", "queue", "number", "tenant", "profile", "label")
_NUMBERED = re.compile(r"(?P<queue>.*?)\.?(?P<number>[0-9]{1,9})", re.DOTALL)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AssignmentInput:
    """`assignor` is None where none is named."""

    services: list[ServiceInfo]
    partitions: list[ClusterPartition]
    current: dict[str, str]
    assignor: str | None


def read_input(text: str) -> AssignmentInput:
    """InvalidInput for what is no JSON, and for anything in it that is not understood."""
    fields = read_object(parse(text), "the input", _KEYS)
    for needed in ("services", "partitions"):
        if needed not in fields:
            raise InvalidInput(f"the input has no {needed!r}; give a list, which may be empty")
    services = [_service(*item) for item in read_list(fields["services"], "services")]
    partitions = [_partition(*item) for item in read_list(fields["partitions"], "partitions")]
    check_unique("services", (service.service_id for service in services))
    check_unique("partitions", (partition.name for partition in partitions))
    current = read_object(fields.get("current", {}), "current")
    owners = {partition: read_text(owner, f"current[{partition!r}]") for partition, owner in current.items()}
    assignor = read_text(fields["assignor"], "assignor") if "assignor" in fields else None
    return AssignmentInput(services, partitions, owners, assignor)


def _service(value: object, where: str) -> ServiceInfo:
    fields = {"id": value} if isinstance(value, str) else read_object(value, where, _SERVICE_KEYS, "an id or an object")
    service_id = _name(fields, where, "id", "service_id")
    given: dict[str, Any] = {}
    if "service_types" in fields:
        kinds = read_list(fields["service_types"], f"{where}.service_types")
        given["service_types"] = tuple(_service_type(*item) for item in kinds)
    if "weight" in fields:
        given["weight"] = read_weight(fields["weight"], f"{where}.weight")
    if "labels" in fields:
        given["labels"] = frozenset(read_texts(fields["labels"], f"{where}.labels"))
    if "dedicated_to" in fields:
        given["dedicated_to"] = frozenset(map(_dedication, read_texts(fields["dedicated_to"], f"{where}.dedicated_to")))
    try:
        return ServiceInfo(service_id, **given)
    except InvalidName as error:
        raise InvalidInput(f"{where}: {service_id!r} is no service id: {error}") from None
    except ConfigurationError as error:
        raise InvalidInput(f"{where}: {error}") from None


def _partition(value: object, where: str) -> ClusterPartition:
    if isinstance(value, str):
        fields: Fields = {"name": value}
    else:
        fields = read_object(value, where, _PARTITION_KEYS, "a name or an object")
    name = _name(fields, where, "name", "id")
    given: dict[str, Any] = _by_name(name)
    for key in ("queue", "profile", "label"):
        if key in fields:
            given[key] = read_text(fields[key], f"{where}.{key}", may_be_empty=True)
    if "number" in fields:
        given["number"] = read_whole_number(fields["number"], f"{where}.number")
    if "service_type" in fields:
        given["service_type"] = _service_type(fields["service_type"], f"{where}.service_type")
    if "tenant" in fields:
        given["tenant"] = read_uuid(fields["tenant"], f"{where}.tenant")
    return ClusterPartition(name, **given)


def _by_name(name: str) -> Fields:
    """Partitions are called by their topic and number, as `tb_rule_engine.main.3`: what is not given follows."""
    numbered = _NUMBERED.fullmatch(name)
    return {"queue": numbered["queue"], "number": int(numbered["number"])} if numbered else {"queue": name}


def _name(fields: Fields, where: str, key: str, other: str) -> str:
    if key in fields and other in fields:
        raise InvalidInput(f"{where} has both {key!r} and {other!r}; give one of them")
    if key not in fields and other not in fields:
        raise InvalidInput(f"{where} has no {key!r}")
    found = key if key in fields else other
    return read_text(fields[found], f"{where}.{found}")


def _dedication(text: str) -> str:
    """A tenant as it is written everywhere else; a profile as it is."""
    return text.lower() if _UUID.fullmatch(text) else text


def _service_type(value: object, where: str) -> ServiceType:
    try:
        return ServiceType.of(read_text(value, where))
    except ConfigurationError as error:
        raise InvalidInput(f"{where}: {error}") from None
