"""What a plan was shown for: it alone may be confirmed. What was typed after it is planned first."""

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.utils.crypto import salted_hmac


def digest(parts: Mapping[str, Any]) -> str:
    """Of what a plan was made for: what is confirmed has to be that. It tells nobody what secrets are among it."""
    text = json.dumps(parts, sort_keys=True, default=_plain)
    return salted_hmac("what a plan was made for", text, algorithm="sha256").hexdigest()[:32]


def is_confirmed(request: HttpRequest, planned: str) -> bool:
    """Whether somebody who was shown the plan of just this carries it out."""
    return is_to_be_done(request) and request.POST.get("planned") == planned


def is_to_be_done(request: HttpRequest) -> bool:
    return "confirm" in request.POST


def _plain(value: Any) -> Any:
    """Rows by their keys."""
    if hasattr(value, "pk"):
        return str(value.pk)
    return [str(row.pk) for row in value] if hasattr(value, "model") else str(value)
