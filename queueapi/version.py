"""Which release this is. `pyproject.toml` says the same, and a test that it does."""

from typing import Final

NAME: Final = "Switchyard"
VERSION: Final = "0.1.0"
