"""What nobody reads is refused: a filter that is misspelt would mean everything, a dry run that is would be none."""

from collections.abc import Iterator
from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.settings import api_settings

from queueapi.names import unknown_name
from queueapi.rest.conventions.dry_runs import DRY_RUN

NON_FIELD_ERRORS_KEY: Final = api_settings.NON_FIELD_ERRORS_KEY


def check_query(view: Any, request: Request) -> None:
    """ValidationError for parameters that this method has not."""
    given = request.query_params
    if not given:
        return
    known = set(_known(view, request))
    if wrong := {name: [unknown_name("parameter", name, known)] for name in given if name not in known}:
        raise ValidationError(wrong)


def check_body(view: Any, request: Request) -> None:
    """ValidationError for a body that nobody reads: of a method whose schema says `request=None`."""
    schema = _schema_of(view, request)
    if request.data and schema is not None and schema.get_request_serializer() is None:
        names = request.data if isinstance(request.data, dict) else [NON_FIELD_ERRORS_KEY]
        raise ValidationError({name: ["nothing is read from a body here; leave it out"] for name in names})


def _known(view: Any, request: Request) -> Iterator[str]:
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        yield DRY_RUN
    yield from _declared(view, request)
    if getattr(view, "detail", False):
        yield from (parameter.name for parameter in getattr(view, "path_parameters", ()))
    paginator = getattr(view, "paginator", None)
    if request.method == "GET" and not _is_one(view):
        pages = () if paginator is None else paginator.get_schema_operation_parameters(view)
        yield from (parameter["name"] for parameter in pages)
        yield from _filters(view)


def _declared(view: Any, request: Request) -> Iterator[str]:
    """What the schema says of the method itself: `extend_schema(parameters=...)`."""
    schema = _schema_of(view, request)
    for parameter in () if schema is None else schema.get_override_parameters():
        if isinstance(parameter, OpenApiParameter) and parameter.location == OpenApiParameter.QUERY:
            yield parameter.name
        elif isinstance(parameter, type) and issubclass(parameter, Serializer):
            yield from (str(name) for name in parameter().get_fields())


def _schema_of(view: Any, request: Request) -> Any:
    """As `extend_schema` made it; None where it was not asked to."""
    name = getattr(view, "action", None) or (request.method or "").lower()
    schema = getattr(getattr(view, name, None), "kwargs", {}).get("schema")
    if not isinstance(schema, type):
        return None
    made: Any = schema()
    made.view, made.method = view, request.method
    return made


def _filters(view: Any) -> Iterator[str]:
    for backend in getattr(view, "filter_backends", ()):
        find = getattr(backend(), "get_filterset_class", None)
        filterset = None if find is None else find(view, view.queryset)
        yield from () if filterset is None else filterset.base_filters


def _is_one(view: Any) -> bool:
    """Whether the answer is one thing. A list below one thing has pages of its own."""
    return getattr(view, "action", None) == "retrieve"
