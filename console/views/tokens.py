from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from console.access import actor_of, viewer
from console.changes import carried_out
from console.lists import ListPage, Sort
from console.people_filters import TokenFilter
from console.people_forms import TokenForm
from queueapi.access.table import WRITE, Resource
from queueapi.actions.tokens import create_token, revoke_token
from queueapi.models import ApiToken
from queueapi.selectors.tokens import tokens_seen_by


class TokenList(ListPage):
    template_name = "tokens/list.html"
    filter_class = TokenFilter
    default_sort = Sort("created", descending=True)
    columns = {
        "name": "name",
        "role": "role",
        "by": "created_by__username",
        "created": "created_at",
        "expires": "expires_at",
        "used": "last_used_at",
    }

    def all_rows(self) -> QuerySet[Any]:
        return _seen(self.request)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """An empty form; a POST makes the token and shows it: the only answer that ever has it."""
    form = TokenForm(viewer(request), request.POST if request.method == "POST" else None)
    made = carried_out(request, form, lambda: _make(request, form), "Not made")
    if made is None:
        return render(request, "tokens/form.html", {"form": form})
    token, secret = made
    return render(request, "tokens/made.html", {"token": token, "secret": secret})


@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What it means; a POST does it."""
    token = get_object_or_404(_seen(request), pk=pk)
    if request.method == "POST":
        revoke_token(actor_of(request), token)
        messages.success(request, f"Revoked: {token.name}. Within seconds nobody is let in by it.")
        return redirect("tokens")
    is_used = token.last_used_at is not None
    context = {
        "verb": "Revoke",
        "thing": token.name,
        "headline": f"Whoever uses {token.prefix}… is refused within seconds",
        "consequence": "It cannot be taken back: make another token instead. What it did stays in the audit.",
        "warnings": ["It is in use: see that whoever uses it has another."] if is_used else [],
        "back": reverse("tokens"),
        "back_name": "Tokens",
        "leave": "Don't revoke it",
        "button_kind": "danger",
        "need_verb": WRITE,
        "need_resource": Resource.TOKENS,
    }
    return render(request, "parts/confirmation.html", context)


def _make(request: HttpRequest, form: TokenForm) -> tuple[ApiToken, str]:
    given = form.cleaned_data
    lasts = given["lasts"]
    return create_token(
        actor_of(request),
        given["name"],
        form.wanted_scopes,
        role=given["role"],
        tenant=given["tenant"],
        expires_at=None if lasts is None else timezone.now() + lasts,
    )


def _seen(request: HttpRequest) -> QuerySet[ApiToken]:
    return tokens_seen_by(viewer(request), ApiToken.objects.select_related("created_by", "tenant"))
