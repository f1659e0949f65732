"""What a request may send: JSON that is not too deep, and no fields that nobody reads."""

from collections.abc import Mapping
from typing import IO, Any

from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from queueapi.config import config
from queueapi.names import unknown_name
from queueapi.rest.conventions.types import Typed


class BoundedJSONParser(JSONParser):
    """ParseError for JSON that is nested deeper than the settings allow."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        most = config().rest.max_json_depth
        if isinstance(stream, HttpRequest):
            # Kept beside what is made of it: payloads are stored as they were sent.
            _ = stream.body
        try:
            given = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise _too_deep(most) from None
        if _is_deeper(given, most):
            raise _too_deep(most)
        return given


class StrictSerializer(Typed, serializers.Serializer[Any]):
    """Refuses fields that it does not know, with the name that was probably meant, and values of other types."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            if wrong := {name: [unknown_name("field", name, known)] for name in data if name not in known}:
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)


def _too_deep(most: int) -> ParseError:
    return ParseError(
        f"the JSON is nested too deeply, {most} levels are the most; flatten it, or send messages in payload_base64"
    )


def _is_deeper(value: Any, most: int) -> bool:
    """Level by level: however deep it is, nothing is called within itself."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
    return bool(level)
