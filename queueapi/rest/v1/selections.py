"""Which letters a request means."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from queueapi.access.tenancy import visible_selection
from queueapi.choices import LetterState
from queueapi.errors import InvalidInput
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.permissions import requester_of
from queueapi.selectors.letter_filter import LetterFilter, Selection

MAX_NAMED: Final = 10_000

_HELP: Final = {
    "queue": "A queue's id.",
    "tenant": "A tenant's id.",
    "state": f"One of {', '.join(LetterState.values)}.",
    "group": "The id of a group.",
    "fingerprint": "What errors of one kind share, whichever queue they are of.",
    "reason": "Why they were given up.",
    "exception_class": "The error's whole class.",
    "text": "Part of the error's class or message, the topic or the handler; or a letter's id or key.",
    "since": "Failed then or later: a time with its zone.",
    "until": "Failed before then: a time with its zone.",
    "replay": "The id of a replay: letters that it was the last to take, whatever became of them.",
}
# Lists have no index for it.
_TO_CHANGE: Final = {"unchanged_since": "In their state since then, or longer: a time with its zone, as a plan's."}
FILTER_PARAMETERS: Final = [OpenApiParameter(name, str, description=text) for name, text in _HELP.items()]


def filter_in(query: QueryDict) -> LetterFilter:
    """What a list was asked for. InvalidInput says what makes no sense."""
    return LetterFilter.of({name: query[name] for name in _HELP if name in query})


class SelectionSerializer(StrictSerializer):
    """Letters one by one, or a filter: all letters that match it."""

    letters = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=MAX_NAMED, min_length=1)
    filter = serializers.DictField(
        required=False, help_text="; ".join(f"{name}: {text}" for name, text in (_HELP | _TO_CHANGE).items())
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("letters" in attrs) == ("filter" in attrs):
            raise serializers.ValidationError("give either letters or filter")
        return {**attrs, "selection": self._selection(attrs)}

    def _selection(self, attrs: Mapping[str, Any]) -> Selection:
        if "letters" in attrs:
            return self._visible(list(attrs["letters"]))
        try:
            wanted = LetterFilter.of(attrs["filter"])
        except InvalidInput as error:
            raise serializers.ValidationError({"filter": error.message}) from error
        if wanted == LetterFilter():
            raise serializers.ValidationError({"filter": "this means every letter; say at least which state or queue"})
        return self._visible(wanted)

    def _visible(self, selection: Selection) -> Selection:
        return visible_selection(requester_of(self.context["request"]), selection)
