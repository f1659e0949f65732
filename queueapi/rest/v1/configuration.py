"""The whole configuration over REST: as one document, and imported with a plan first."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import IO, Any, Final

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import Resource
from queueapi.actions.configuration import holding_configuration, import_configuration, plan_configuration
from queueapi.config import config
from queueapi.configuration.sections import FORMAT
from queueapi.configuration.yaml_lines import Lines
from queueapi.configuration.yaml_reading import UnreadableYaml, read_yaml
from queueapi.configuration.yaml_writing import write_yaml
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.bodies import BoundedJSONParser
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer, is_dry_run, plans_itself
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access
from queueapi.rest.v1.problem_schema import refusals
from queueapi.selectors.configuration import configuration, hidden_versions

YAML: Final = "application/yaml"
_ENCODING: Final = "utf-8-sig"
_REFUSED: Final = {
    400: "`invalid_input`: nothing was changed; `errors` has every problem under its place, as `queues[3].partitions`, "
    "and begins with the line where the document is YAML. "
    "`parse_error`: this is no YAML or JSON; `detail` names the line."
}
_EXAMPLE: Final = OpenApiExample(
    "A tenant with a queue of its own",
    {
        "format": FORMAT,
        "tenants": [{"name": "Greenhouse Ltd", "profile": "default", "messages_per_s": 200}],
        "queues": [{"tenant": "Greenhouse Ltd", "name": "Orders", "topic": "orders", "handler": "log", "retries": 5}],
    },
    request_only=True,
)


class YamlRenderer(BaseRenderer):
    media_type = YAML
    format = "yaml"

    def render(self, data: Any, *_: Any, **__: Any) -> bytes:
        return b"" if data is None else write_yaml(data).encode()


class BoundedYamlParser(BaseParser):
    """ParseError for what cannot be read, or is more than the settings allow."""

    media_type = YAML

    def parse(
        self,
        stream: IO[Any],  # noqa: ARG002 - nobody limits it, as the request limits its body
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        data: bytes = (parser_context or {})["request"].body
        try:
            return read_yaml(data.decode(_ENCODING), config().rest.max_json_depth)
        except UnicodeDecodeError as error:
            raise ParseError(f"this is not UTF-8, at byte {error.start}") from error
        except UnreadableYaml as error:
            raise ParseError(error.message) from error


class ConfigurationSerializer(serializers.Serializer[Any]):
    """Entries are as `docs/howto/configuration.md` says; secrets are hidden."""

    format = serializers.IntegerField(help_text=f"Of the document. This release has {FORMAT}.")
    tenant_profiles = serializers.ListField(child=serializers.DictField(), help_text="By name.")
    tenants = serializers.ListField(child=serializers.DictField(), help_text="By name, with their quotas and state.")
    queues = serializers.ListField(child=serializers.DictField(), help_text="By their tenants' names and their own.")
    message_types = serializers.ListField(child=serializers.DictField(), help_text="By name, with their topics.")
    alert_channels = serializers.ListField(child=serializers.DictField(), help_text="By name.")
    alert_rules = serializers.ListField(
        child=serializers.DictField(), help_text="By name, with the names of what they are for and of whom they tell."
    )

    @staticmethod
    def tagged_beside() -> Any:
        return hidden_versions()


class GivenConfigurationSerializer(ConfigurationSerializer):
    """What an import takes: a section that is left out stays as it is, and so does a key. One with nothing below its
    name, as YAML allows, is as if it were left out."""

    def get_fields(self) -> Any:
        fields = super().get_fields()
        for name, field in fields.items():
            field.required = name == "format"
            field.allow_null = name != "format"
        return fields


class ProblemOfEntrySerializer(serializers.Serializer[Any]):
    place = serializers.CharField(help_text="In the document, as `queues[3].partitions`.")
    why = serializers.CharField(help_text="What stands in the way, and what to do.")
    line = serializers.IntegerField(allow_null=True, help_text="Of the document, where it is YAML.")


class ConfigurationPlanSerializer(ChangePlanSerializer):
    """What an import did; with `dry_run`, what it would do."""

    problems = ProblemOfEntrySerializer(many=True, help_text="With any, the import is refused as a whole.")


class ConfigurationView(Conventional):
    """All of it is one thing, which has an ETag."""

    access = Access(Resource.CONFIGURATION)
    renderer_classes = (YamlRenderer, JSONRenderer)
    parser_classes = (BoundedYamlParser, BoundedJSONParser)
    has_etag = True
    detail = True

    def get_renderers(self) -> list[BaseRenderer]:
        """Plans are JSON, as they are everywhere."""
        return super().get_renderers() if self.request.method in ("GET", "HEAD") else [JSONRenderer()]

    def holding(self) -> AbstractContextManager[None]:
        return holding_configuration()

    def get_object(self) -> Mapping[str, Any]:
        return configuration()

    def get_serializer(self, instance: Mapping[str, Any]) -> ConfigurationSerializer:
        return ConfigurationSerializer(instance)

    @extend_schema(summary="The whole configuration as one document", responses=ConfigurationSerializer)
    def get(self, _: Request) -> Response:
        """YAML, or JSON where `Accept` asks for that. The same configuration is the same text. Secrets are hidden."""
        response = Response(self.get_serializer(self.get_object()).data)
        response["Cache-Control"] = "no-store"
        return response

    @extend_schema(
        summary="Import a configuration",
        request=GivenConfigurationSerializer,
        responses={200: ConfigurationPlanSerializer, **refusals(_REFUSED)},
        examples=[_EXAMPLE],
    )
    @plans_itself(ConfigurationPlanSerializer)
    def post(self, request: Request) -> Response:
        """Make what is missing and change what differs: all of it, or nothing. What is not in the document stays, so
        this is no PUT. Answers with what was done; with `dry_run`, with what would be, and all that stands in the way.
        """
        act = plan_configuration if is_dry_run(request) else import_configuration
        document, lines = request.data, None
        if request.content_type.lower().startswith(YAML):
            lines = Lines(request.body.decode(_ENCODING))
        return Response(dict(ConfigurationPlanSerializer(act(actor_of(request), document, lines)).data))
