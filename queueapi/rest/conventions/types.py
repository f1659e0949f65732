"""Values have the types that the schema says. DRF would take 5 for "5", and "yes" for true."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.http import QueryDict
from rest_framework import serializers

_NUMBERS: Final = (int, float)
# The first that fits: some are kinds of others.
_TYPES: Final[tuple[tuple[type[serializers.Field[Any, Any, Any, Any]], tuple[type, ...], str], ...]] = (
    (serializers.BooleanField, (bool,), "true or false"),
    (serializers.IntegerField, _NUMBERS, "a whole number"),
    (serializers.FloatField, _NUMBERS, "a number"),
    (serializers.CharField, (str,), "a text"),
    (serializers.ChoiceField, (str,), "a text"),
    (serializers.UUIDField, (str,), "a text"),
    (serializers.DateTimeField, (str,), "a text"),
    (serializers.DurationField, (str,), "a text"),
    (serializers.PrimaryKeyRelatedField, (str,), "a text"),
)


class Typed(serializers.BaseSerializer[Any]):
    """For serializers that read bodies; inherit it first. What a query says is text, and taken for what is meant."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and not isinstance(data, QueryDict):
            fields: Mapping[str, Any] = self.fields  # type: ignore[attr-defined] # of a serializer
            told = {name: list(_wrong(fields[name], value)) for name, value in data.items() if name in fields}
            if wrong := {name: remedies for name, remedies in told.items() if remedies}:
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)


def _wrong(field: Any, value: Any) -> Iterator[str]:
    """What to send instead. Of what is null, and of lists and their like, the field itself is the judge."""
    if value is None or field.read_only:
        return
    child = getattr(field, "child", None)
    if isinstance(field, serializers.ManyRelatedField):
        # It would take an object for its keys.
        if isinstance(value, list):
            yield from (remedy for each in value for remedy in _wrong(field.child_relation, each))
        else:
            yield f"{str(value)[:100]!r} is {_name(value)}; send a list"
        return
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        yield from (remedy for each in value for remedy in _wrong(child, each))
    elif isinstance(field, serializers.DictField) and isinstance(value, dict):
        yield from (remedy for each in value.values() for remedy in _wrong(child, each))
    else:
        for kind, types, name in _TYPES:
            if isinstance(field, kind):
                if not _is_of(value, types):
                    yield f"{str(value)[:100]!r} is {_name(value)}; send {name}"
                return


def _is_of(value: Any, types: tuple[type, ...]) -> bool:
    """Python's booleans are numbers, JSON's are not."""
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _name(value: Any) -> str:
    names = ((bool, "true or false"), (_NUMBERS, "a number"), (str, "a text"), (list, "a list"))
    return next((name for kind, name in names if isinstance(value, kind)), "an object")
