"""How many rows a page has at most."""

from typing import Final

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

PARAMETER: Final = "page_size"


def asked_page_size(request: Request, default: int, most: int) -> int:
    """ValidationError for what is no number from 1 to `most`."""
    given = request.query_params.get(PARAMETER, str(default))
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= most:
        raise ValidationError({PARAMETER: [f"{given[:20]!r} is no size; use 1 to {most}"]})
    return int(given)
