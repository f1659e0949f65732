"""What a plan was shown for: it alone may be confirmed. What was typed after it is planned first."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.http import HttpRequest


def digest(parts: Mapping[str, Any]) -> str:
    """Of what a plan was made for: what is confirmed has to be that."""
    text = json.dumps(dict(_plain(parts)), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def is_confirmed(request: HttpRequest, planned: str) -> bool:
    """Whether somebody who was shown the plan of just this carries it out."""
    return is_to_be_done(request) and request.POST.get("planned") == planned


def is_to_be_done(request: HttpRequest) -> bool:
    return "confirm" in request.POST


def _plain(parts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in parts.items():
        yield name, getattr(value, "pk", value)
