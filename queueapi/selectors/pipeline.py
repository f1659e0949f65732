"""The pipeline's operations, by their kind."""

from typing import Final

BACKFILL: Final = "backfill"
