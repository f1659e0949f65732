"""Write the whole configuration as YAML: profiles, tenants, queues, message types, alert channels and alert rules,
without secrets."""

from typing import Any

from django.core.management.base import BaseCommand

from queueapi.configuration.yaml_writing import write_yaml
from queueapi.selectors.configuration import configuration


class Command(BaseCommand):
    help = f"{__doc__} The same configuration is always the same text."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(write_yaml(configuration()), ending="")
