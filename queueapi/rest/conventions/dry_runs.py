"""`?dry_run=true` on every write: the plan instead of the change."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.actions.rehearsing import rehearse

Handler = TypeVar("Handler", bound=Callable[..., Any])

DRY_RUN: Final = "dry_run"

_VALUES: Final = {"false": False, "0": False, "true": True, "1": True}
_PLAN: Final = "plan_of_dry_runs"


class ChangeSerializer(serializers.Serializer[Any]):
    what = serializers.CharField()
    before = serializers.JSONField(allow_null=True, help_text="Null: it is not there.")
    after = serializers.JSONField(allow_null=True, help_text="Null: it would not be there.")


class ChangePlanSerializer(serializers.Serializer[Any]):
    """What a change would do: the answer to `dry_run=true`."""

    summary = serializers.CharField()
    changes = ChangeSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField(), help_text="What is allowed, and seldom wanted.")


def is_dry_run(request: Request) -> bool:
    """ValidationError for a value that says neither."""
    given = request.query_params.get(DRY_RUN, "false")
    if given.lower() not in _VALUES:
        raise ValidationError({DRY_RUN: [f"{given[:100]!r} is neither true nor false; use dry_run=true for a plan"]})
    return _VALUES[given.lower()]


def plans_itself(shape: type[serializers.BaseSerializer[Any]]) -> Callable[[Handler], Handler]:
    """For a view's method that asks `is_dry_run`, and answers with a plan of this shape."""

    def mark(handler: Handler) -> Handler:
        setattr(handler, _PLAN, shape)
        return handler

    return mark


def rehearsed(handler: Handler) -> Handler:
    """For a view's method whose action changes the database alone, and audits it: see `rehearse`."""

    @wraps(handler)
    def respond(view: Any, request: Request, *args: Any, **kwargs: Any) -> Any:
        if not is_dry_run(request):
            return handler(view, request, *args, **kwargs)
        plan = rehearse(lambda: handler(view, request, *args, **kwargs))
        return Response(ChangePlanSerializer(plan).data)

    setattr(respond, _PLAN, ChangePlanSerializer)
    return respond  # type: ignore[return-value]


def plan_shape(handler: Callable[..., Any] | None) -> type[serializers.BaseSerializer[Any]] | None:
    """What its plans look like. None: it cannot plan."""
    return getattr(handler, _PLAN, None)


def check_dry_run(request: Request, handler: Callable[..., Any]) -> bool:
    """Whether only a plan is wanted. ValidationError where the method would change something all the same."""
    wanted = is_dry_run(request)
    if wanted and plan_shape(handler) is None:
        raise ValidationError({DRY_RUN: ["this cannot be planned; leave dry_run out to have it done"]})
    return wanted
