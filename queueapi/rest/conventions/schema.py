"""The conventions in the OpenAPI document: the same headers, parameters and errors on every operation."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from queueapi.rest.conventions.dry_runs import DRY_RUN, plan_shape
from queueapi.rest.conventions.idempotency import HEADER, REPLAYED
from queueapi.rest.problems import CONTENT_TYPE

_READING: Final = ("GET", "HEAD")
_FIRST: Final = re.compile(r"[^.;:\n]+(?:\n[^.;:\n]+)*")
_PROBLEMS: Final = {
    "400": "What was sent makes no sense; `errors` names the fields.",
    "401": "`not_authenticated`, `authentication_failed`, `invalid_token`: nobody knows who asks.",
    "403": "`permission_denied`, `not_allowed`: the role, or the token's scopes, do not allow it.",
    "404": "There is no such thing, or it is another tenant's; or the cursor is none of ours.",
    "406": "Answers are JSON.",
    "409": "It is in no state for that, or was changed meanwhile, or its `Idempotency-Key` is in use.",
    "412": "It is not as `If-Match` wants it to be; nothing was changed.",
    "413": "The body is too large.",
    "415": "Bodies are JSON.",
    "422": "The `Idempotency-Key` was sent with another request.",
    "429": "`rate_limited`, `locked_out`: too many requests or wrong passwords; `Retry-After` says when to try again.",
    "500": "Something went wrong here; the server's log says what, beside the request id.",
}


class ProblemSerializer(serializers.Serializer[Any]):
    """An error (RFC 9457). `code` is stable, `detail` is for people."""

    type = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    request_id = serializers.CharField(allow_null=True)
    retryable = serializers.BooleanField(required=False)
    errors = serializers.DictField(  # type: ignore[assignment] # declared fields are kept elsewhere
        required=False, help_text="What is wrong with each field."
    )


class ConventionalSchema(AutoSchema):
    def get_override_parameters(self) -> list[Any]:
        """What a method declares itself is told instead of what its view has for all paths of one thing."""
        shared = getattr(self.view, "path_parameters", ()) if self._is_detail() else ()
        return [*shared, *super().get_override_parameters(), *self._headers(), *self._answer_headers()]

    def get_summary(self) -> str | None:
        """As the view's `summaries` say by action, else what the method's docstring begins with. Those of lists and
        single things are the library's."""
        action = getattr(self.view, "action", None) or ""
        told: Mapping[str, str] = getattr(self.view, "summaries", {})
        if action in told or action in ("list", "retrieve"):
            return told.get(action)
        found = _FIRST.match(self.get_description() or "")
        return " ".join(found.group().split()) if found else None

    def _headers(self) -> Iterator[OpenApiParameter]:
        yield _header("X-Request-Id", "Names the request in its answer and in the log; left out: a new one.")
        if self.method in _READING:
            if self._is_thing():
                yield _header("If-None-Match", "An ETag: 304 where it is still that.")
            return
        yield OpenApiParameter(
            DRY_RUN, bool, OpenApiParameter.QUERY, description="Only say what would be done: a plan, with 200."
        )
        yield _header(HEADER, "Sent again with the same key, the request is answered again, and carried out once.")
        if self._is_detail():
            yield _header("If-Match", "The ETag that it must still have: 412 where somebody has changed it.")

    def _answer_headers(self) -> Iterator[OpenApiParameter]:
        yield _answer_header("X-Request-Id", "The request's id.")
        yield _answer_header("RateLimit-Limit", "Requests in a minute.")
        yield _answer_header("RateLimit-Remaining", "How many are left.")
        yield _answer_header("RateLimit-Reset", "Seconds until there are as many again.")
        yield _answer_header("Retry-After", "Seconds.", [409, 429])
        if self._is_thing():
            yield _answer_header("ETag", "What it is now.", [200, 304])
        elif self.method not in _READING:
            yield _answer_header(REPLAYED, "`true`: the answer to the same request, sent before.", [200, 201, 202, 204])

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        if (plan := plan_shape(self._handler())) is not None:
            self._add_plan(bodies, plan, direction)
        if self._is_thing():
            headers = self._get_response_headers_for_code("304", direction)
            bodies["304"] = {"description": "It is still what `If-None-Match` says.", "headers": headers}
        for code in self._problem_codes():
            told = self._told(ProblemSerializer, code, [CONTENT_TYPE], direction)
            bodies.setdefault(code, {**told, "description": _PROBLEMS[code]})
        return bodies

    def _add_plan(self, bodies: dict[str, Any], plan: type[serializers.BaseSerializer[Any]], direction: Any) -> None:
        """Beside what the change itself answers with."""
        planned = self._told(plan, "200", None, direction)
        done = bodies.setdefault("200", planned)
        shapes = [each["content"]["application/json"]["schema"] for each in (done, planned)]
        if shapes[0] != shapes[1]:
            done["content"]["application/json"]["schema"] = {"oneOf": shapes}

    def _told(self, shape: Any, code: str, media_types: list[str] | None, direction: Any) -> dict[str, Any]:
        told: dict[str, Any] = self._get_response_for_code(shape, code, media_types, direction)  # type: ignore[no-untyped-call]
        return told

    def _problem_codes(self) -> Iterator[str]:
        yield from ("400", "401", "403", "406", "429", "500")
        if "{" in self.path or self._is_paged():
            yield "404"
        if self.method not in _READING:
            yield from ("409", "413", "415", "422")
            if self._is_detail():
                yield "412"

    def _is_paged(self) -> bool:
        return self.method in _READING and self._is_list_view() and self._get_paginator() is not None  # type: ignore[no-untyped-call]

    def _handler(self) -> Any:
        return getattr(self.view, getattr(self.view, "action", None) or self.method.lower(), None)

    def _is_detail(self) -> bool:
        return bool(getattr(self.view, "detail", False))

    def _is_thing(self) -> bool:
        """Whether it answers with one thing, which has an ETag."""
        action = getattr(self.view, "action", None)
        is_view = action is None and getattr(self.view, "has_etag", False)
        return self.method in _READING and (action in ("retrieve", *getattr(self.view, "also_things", ())) or is_view)


def _header(name: str, text: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=text)


def _answer_header(name: str, text: str, codes: list[int | str] | None = None) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=text, response=codes or True)
