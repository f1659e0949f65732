#!/usr/bin/env python
"""Switchyard's command line."""

import os
import sys

from django.core.management import execute_from_command_line

from queuecore.errors import ConfigurationError


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        execute_from_command_line(sys.argv)
    except ConfigurationError as error:
        print(f"switchyard: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
