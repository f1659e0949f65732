"""Changes by one button: what would be done first, on a page of its own, and then that."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from queueapi.errors import ActionError

_PAGE = "parts/confirmation.html"


def confirmed(
    request: HttpRequest, act: Callable[[], str], refusal: str, back: str, ask: Callable[[], Mapping[str, Any]]
) -> HttpResponse:
    """A POST does it, and leads back with what `act` says of it, or with why it was refused. Else what would be done:
    `ask` tells what `parts/confirmation.html` shows."""
    if request.method != "POST":
        return render(request, _PAGE, {"back": back, **ask()})
    try:
        messages.success(request, act())
    except ActionError as error:
        messages.error(request, f"{refusal}: {error.message}.")
    return redirect(back)


def show_confirmation(
    request: HttpRequest, back: str, kept: Mapping[str, Any], told: Mapping[str, Any]
) -> HttpResponse:
    """Of what a form on another page has sent: it is sent once more, with `confirm`."""
    return render(request, _PAGE, {"back": back, "kept": {**kept, "confirm": "yes"}, **told})
