"""`manage.py settings_reference`: the settings reference, as Markdown, made from the settings themselves."""

from typing import Any

from django.core.management.base import BaseCommand

from queueapi.config import Config
from queuecore.config import SettingInfo, describe

_INTRODUCTION = """\
# Settings

Made by `make reference` from `queueapi/config.py`; change it there.

Settings are environment variables, read once when a process starts. Everything wrong with them is reported at once,
and a `SWITCHYARD_` variable that is not listed here is an error. A relative folder counts from where the process
starts; `~` is the home of its user. *Secret* values never appear in a message.

| Variable | Value | Default | Meaning |
|---|---|---|---|
"""


class Command(BaseCommand):
    help = "Print the settings reference as Markdown."
    requires_system_checks: list[str] = []

    def handle(self, *_arguments: Any, **_options: Any) -> None:
        self.stdout.write(settings_reference(Config), ending="")


def settings_reference(settings_class: type[Any]) -> str:
    return _INTRODUCTION + "".join(_row(info) for info in describe(settings_class))


def _row(info: SettingInfo) -> str:
    names = f"`{info.variable}`" + (f" or `{info.alias}`" if info.alias else "")
    kind = f"{info.kind}, *secret*" if info.secret else info.kind
    default = f"`{info.default}`" if info.default else "empty"
    return f"| {names} | {kind} | {default} | {info.help_text} |\n"
