"""What the documentation shows of each operation: bodies by hand, answers from their shapes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from queueapi.rest.conventions.examples import Examples, problem_example
from queueapi.rest.problems import CONTENT_TYPE

_TENANT: Final = "13814000-1dd2-11b2-8080-808080808080"
_ENTITY: Final = "784f394c-42b6-435a-983c-b7beff2784f9"
_LETTER: Final = "0523036f-57fb-4d9c-ab44-0a6fb641ac06"
# By the name of the shape. An operation that has examples of its own (`extend_schema`) shows those.
BODIES: Final[Mapping[str, Any]] = {
    "Reason": {"reason": "known, and mended"},
    "Note": {"note": "ticket 4711"},
    "Message": {"headers": {}, "payload": {"temperature": 21}, "reason": "the sensor was wrong"},
    "Decision": {"letters": [_LETTER], "reason": "test data"},
    "OwnPassword": {"current": "correct horse battery", "password": "staple correct horse"},
    "QueueCreation": {"name": "Orders", "topic": "orders", "handler": "log", "partitions": 6, "retries": 3},
    "PatchedQueueChange": {"retries": 7},
    "Drain": {"to": "Main"},
    "Resize": {"partitions": 12},
    "Publish": {"tenant": _TENANT, "entity": _ENTITY, "payload": {"temperature": 21}},
    "Pausing": {"reason": "billing is away", "partition": 3},
    "Resume": {"partition": 3},
    "ReplayRequest": {"filter": {"state": "open", "exception_class": "shop.errors.OutOfRange"}, "rate_per_s": 50},
    "PatchedProfileChange": {"messages_per_s": 200, "burst_s": 10},
    "PatchedTenantChange": {"messages_per_s": 200, "description": "Contract 2231"},
    "NewToken": {"name": "deploy", "scopes": ["queues:read", "messages:write"]},
    "NewUser": {"name": "eve", "password": "correct horse battery", "role": "tenant_admin", "tenant": _TENANT},
    "Password": {"password": "correct horse battery"},
    "Role": {"role": "auditor"},
    "Acknowledgement": {"note": "looking at it; ticket 4711"},
    "AlertSilence": {"until": "2026-03-14T18:00:00Z", "reason": "billing is being upgraded"},
    "SilenceCreation": {"queue": _ENTITY, "until": "2026-03-14T18:00:00Z", "reason": "billing is being upgraded"},
    "PatchedRuleChange": {"threshold": 20000, "resolve_at": 15000},
    "PatchedChannelChange": {"enabled": False},
}
# Of what is no JSON.
_STREAMS: Final = {
    "text/csv": "id,at,actor,action,object_type,object_id\r\n7,2026-03-14T09:26:53Z,ada,pause,queue,Main\r\n",
    "application/x-ndjson": '{"id": 7, "at": "2026-03-14T09:26:53Z", "actor": "ada", "action": "pause"}\n',
    "text/event-stream": ': following\n\nid: 3:42\nevent: message\ndata: {"partition": 3, "offset": 42}\n\n',
}
_DOCUMENT: Final = {"openapi": "3.0.3", "info": {"title": "Switchyard", "version": "1"}, "paths": {}}


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular's: to whatever has none."""
    shapes = result["components"]["schemas"]
    for path, operations in result["paths"].items():
        for operation in operations.values():
            for told, example in _bodies(operation, Examples(shapes, is_request=True)):
                _add(told, example)
            for told, example in _answers(path, operation, Examples(shapes)):
                _add(told, example)
    return result


def _add(told: dict[str, Any], example: Any) -> None:
    if "examples" not in told and "example" not in told:
        told["example"] = example


def _bodies(operation: Mapping[str, Any], examples: Examples) -> Iterator[tuple[dict[str, Any], Any]]:
    for told in operation.get("requestBody", {}).get("content", {}).values():
        name = told["schema"].get("$ref", "").rsplit("/", 1)[-1]
        yield told, BODIES[name] if name in BODIES else examples.of(told["schema"])


def _answers(path: str, operation: Mapping[str, Any], examples: Examples) -> Iterator[tuple[dict[str, Any], Any]]:
    for status, answer in operation["responses"].items():
        for kind, told in answer.get("content", {}).items():
            if kind == CONTENT_TYPE:
                yield told, problem_example(status)
            elif kind == "application/octet-stream":
                yield told, '{"temperature": 21}'
            elif path.endswith("/schema"):
                yield told, _DOCUMENT
            else:
                yield told, _STREAMS[kind] if kind in _STREAMS else examples.of(told["schema"])
