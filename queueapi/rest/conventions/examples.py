"""Examples for the OpenAPI document, made from its shapes: what a field is called, and what it may be, says enough."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

Shape = Mapping[str, Any]

_UUID: Final = "784f394c-42b6-435a-983c-b7beff2784f9"
_TIME: Final = "2026-03-14T09:26:53.589793Z"
_FORMATS: Final = {
    "uuid": _UUID,
    "date-time": _TIME,
    "uri": "https://switchyard.example.org/api/v1/queues?cursor=WyJNYWluIl0%3D",
    "duration": "PT1H30M",
    "ipv4": "192.0.2.7",
}
# Texts by the name of their field. Any other text is its own name.
_TEXTS: Final = {
    "name": "Main",
    "topic": "main",
    "queue": "Main",
    "handler": "webhook",
    "consumer_group": "main-consumers",
    "reason": "billing is away",
    "note": "ticket 4711",
    "key": _UUID,
    "tenant": _UUID,
    "payload_base64": "eyJ0ZW1wZXJhdHVyZSI6IDIxfQ==",
    "raw_key_base64": "c2Vuc29y",
    "fingerprint": "aaaabbbbccccdddd",
    "exception_class": "shop.errors.OutOfRange",
    "exception_message": "too hot",
    "service_id": "machine-2-host",
    "service": "machine-2-host",
    "host": "machine-2",
    "address": "192.0.2.7",
    "error": "",
    "state": "running",
    "why_not": "",
    "state_topic": "",
    "dlq_topic": "",
    "label": "",
    "description": "",
    "kind": "provision_queue",
    "actor": "ada",
    "created_by": "ada",
    "request_id": "3f1c8c1e5a5d4b0f9c2d7e6a1b0f4c3d",
    "prefix": "sy_4f8a",
    "hash_function": "murmur3_128",
    "summary": "change queue Main",
    "what": "queue Main: retries",
}
_NUMBERS: Final = {
    "partitions": 12,
    "offset": 42,
    "end_offset": 43,
    "concurrency": 1,
    "poll_interval_ms": 25,
    "pack_processing_timeout_ms": 60_000,
    "batch_size": 1000,
    "failure_percentage": 0,
    "retry_pause_ms": 3000,
    "max_retry_pause_ms": 60_000,
    "retention_ms": 604_800_000,
    "retention_bytes": 1_073_741_824,
    "segment_bytes": 26_214_400,
    "timestamp_ms": 1_773_480_413_589,
    "abort_ratio": 0.5,
}
# Null, where that may be: these seldom are anything else.
_MOSTLY_NULL: Final = {"previous", "operation", "successor", "target", "finished_at", "max_backlog", "state_topic"}
_CHOICES: Final = ("active", "running", "open", "at_least_once", "RETRY_FAILED_AND_TIMED_OUT", "TB_RULE_ENGINE")
_PROBLEMS: Final = {
    "400": ("invalid_input", "some of what was sent cannot be used; see errors"),
    "401": ("not_authenticated", "Authentication credentials were not provided."),
    "403": ("permission_denied", "You do not have permission to perform this action."),
    "404": ("not_found", "there is no such thing here"),
    "406": ("not_acceptable", "Could not satisfy the request Accept header."),
    "409": ("changed_meanwhile", "somebody has changed it meanwhile; load it anew, and decide again"),
    "412": ("precondition_failed", 'it has changed: its ETag is "a3f1" now; load it anew, and decide again'),
    "413": ("payload_too_large", "the body is larger than 2097152 bytes; send less at once"),
    "415": ("unsupported_media_type", 'Unsupported media type "application/xml" in request.'),
    "422": ("idempotency_key_reused", "this Idempotency-Key was sent with another request; use a new key for each"),
    "429": ("rate_limited", "6000 requests in a minute are the most; try again in 48 s, and send fewer"),
    "500": ("internal_error", "something went wrong here; the server's log says what, beside the request id"),
    "503": ("provider_unavailable", "the provider does not answer; try again"),
}


def problem_example(status: str) -> dict[str, Any]:
    phrase = HTTPStatus(int(status)).phrase
    code, detail = _PROBLEMS.get(status, (phrase.lower().replace(" ", "_"), phrase))
    told = {"type": "about:blank", "status": int(status), "code": code, "detail": detail}
    return {**told, "request_id": _TEXTS["request_id"]}


@dataclass(frozen=True)
class Examples:
    """Of shapes that refer to these components. `is_request` says whose fields are meant."""

    components: Mapping[str, Shape]
    is_request: bool = False

    def of(self, shape: Shape, name: str = "") -> Any:
        """One that the shape allows. `name` is the field's."""
        if shape.get("nullable") and name in _MOSTLY_NULL:
            return None
        shape = self._resolved(shape)
        if "enum" in shape:
            return next((choice for choice in _CHOICES if choice in shape["enum"]), shape["enum"][0])
        kind = shape.get("type")
        if kind == "object":
            return self._object(shape)
        if kind == "array":
            return [self.of(shape["items"], name.removesuffix("s"))]
        if kind in ("integer", "number"):
            number = _NUMBERS.get(name, 3)
            return min(max(number, shape.get("minimum", number)), shape.get("maximum", number))
        if kind == "boolean":
            return False
        return self._text(shape, name) if kind == "string" else {}

    def _resolved(self, shape: Shape) -> Shape:
        """Of several that are allowed the first; of those that hold together all."""
        if "$ref" in shape:
            return self._resolved(self.components[shape["$ref"].rsplit("/", 1)[1]])
        for choice in ("oneOf", "anyOf"):
            if choice in shape:
                return self._resolved(shape[choice][0])
        if "allOf" in shape:
            parts = [self._resolved(part) for part in shape["allOf"]]
            return {key: value for part in (*parts, shape) for key, value in part.items() if key != "allOf"}
        return shape

    def _object(self, shape: Shape) -> dict[str, Any]:
        hidden = "readOnly" if self.is_request else "writeOnly"
        fields = shape.get("properties", {})
        made = {name: self.of(field, name) for name, field in fields.items() if not field.get(hidden)}
        more = shape.get("additionalProperties")
        return made if made or not isinstance(more, Mapping) or not more else {"main": self.of(more)}

    def _text(self, shape: Shape, name: str) -> str:
        made = _FORMATS.get(shape.get("format", "")) or _TEXTS.get(name, name.replace("_", " "))
        return made[: shape.get("maxLength")]
