"""A configuration document as YAML: the same text for the same values, always."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from queueapi.configuration.sections import FORMAT

HEAD: Final = f"""\
# The configuration of a Switchyard installation, format {FORMAT}.
# Secrets are shown as ********; an import leaves what is shown so as it is. Users, roles, tokens, messages, dead
# letters, pauses and the installation's own settings are not part of it.
# An import creates what is missing and changes what differs. It deletes nothing, and a key that is left out stays.

"""
# So wide that no line is folded: a text in two lines would differ in both when a word of it is changed.
_WIDTH: Final = 2**31 - 1
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _PlainDumper(_Dumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Equal values are written out, each where it is."""
        return True


def _text(dumper: Any, value: str) -> yaml.Node:
    """Sources keep their lines."""
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)
    return node


_PlainDumper.add_representer(str, _text)


def write_yaml(document: Mapping[str, Any]) -> str:
    """With a comment at the top that says what it is."""
    body: str = yaml.dump(
        dict(document),
        Dumper=_PlainDumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        default_flow_style=False,
    )
    return HEAD + body
