from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.audit_changes import audited
from console.changes import carried_out, planned
from console.lists import ListPage, Sort
from console.meanwhile import thing_of
from console.people_filters import UserFilter
from console.people_forms import PasswordForm, RoleForm, UserForm
from console.sent_forms import FormOf
from console.templatetags.console import plural
from queueapi.access.principals import role_of
from queueapi.access.table import WRITE, Resource
from queueapi.actions.users import create_user, set_user_active, set_user_password, set_user_role, user_locked
from queueapi.errors import ActionError
from queueapi.selectors.tenants import recent_audit
from queueapi.selectors.users import users_for_lists


class UserList(ListPage):
    template_name = "users/list.html"
    filter_class = UserFilter
    default_sort = Sort("name", descending=False)
    columns = {
        "name": "username",
        "role": "account__role",
        "tenant": "account__tenant__name",
        "seen": "last_login",
        "tokens": "token_count",
    }

    def all_rows(self) -> QuerySet[Any]:
        return users_for_lists()


def show_user(request: HttpRequest, pk: int) -> HttpResponse:
    person = get_object_or_404(users_for_lists(), pk=pk)
    context = {"person": person, "standing": role_of(person), "audit": audited(request, recent_audit("user", pk))}
    return render(request, "users/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """An empty form; a POST creates the user, or shows the form again if refused."""
    form = UserForm(request.POST if request.method == "POST" else None)
    made = carried_out(request, form, lambda: create_user(actor_of(request), **form.cleaned_data), "Not created")
    if made is None:
        return render(request, "users/form.html", {"form": form})
    messages.success(request, f"Created: {made.get_username()} can sign in.")
    return redirect("user", pk=made.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def change_role(request: HttpRequest, pk: int) -> HttpResponse:
    """What they are now; a POST shows what another role would change, and then gives them that."""
    person = get_object_or_404(users_for_lists(), pk=pk)
    sent = FormOf(
        lambda data: RoleForm(data, initial=_standing(pk)),
        lambda form: set_user_role(actor_of(request), person, **form.cleaned_data),
        "Not changed",
        thing_of("user", person, "user", holding=user_locked),
    ).sent(request)
    if sent.made is None:
        return sent.show(request, "users/role.html", {"person": person})
    messages.success(request, "Changed: it holds from their next request on.")
    return redirect("user", pk=pk)


@require_http_methods(["GET", "HEAD", "POST"])
def set_password(request: HttpRequest, pk: int) -> HttpResponse:
    """Ends their sessions, but for the one in which somebody sets their own."""
    person = get_object_or_404(User, pk=pk)
    form = PasswordForm(request.POST if request.method == "POST" else None)
    done = carried_out(request, form, lambda: _set_password(request, person, form), "Not set")
    if done is None:
        return render(request, "users/password.html", {"form": form, "person": person})
    messages.success(request, f"Set: {person.get_username()} signs in with it from now on.")
    return redirect("user", pk=pk)


@require_http_methods(["GET", "HEAD", "POST"])
def lock(request: HttpRequest, pk: int) -> HttpResponse:
    """What it means; a POST lets them in no more."""
    return _set_active(request, pk, active=False)


@require_http_methods(["GET", "HEAD", "POST"])
def unlock(request: HttpRequest, pk: int) -> HttpResponse:
    return _set_active(request, pk, active=True)


def _standing(pk: int) -> dict[str, Any]:
    """What they are now."""
    now = role_of(get_object_or_404(User.objects.select_related("account"), pk=pk))
    return {} if now is None else {"role": now[0], "tenant": now[1]}


def _set_password(request: HttpRequest, person: User, form: PasswordForm) -> bool:
    set_user_password(actor_of(request), person, form.cleaned_data["password"])
    if person == request.user:
        update_session_auth_hash(request, person)
    return True


def _set_active(request: HttpRequest, pk: int, *, active: bool) -> HttpResponse:
    person = get_object_or_404(users_for_lists(), pk=pk)
    name, verb = person.get_username(), "Unlock" if active else "Lock"
    if request.method == "POST":
        try:
            set_user_active(actor_of(request), person, active=active)
        except ActionError as error:
            messages.error(request, f"Not {verb.lower()}ed: {error.message}.")
        else:
            messages.success(request, f"{verb}ed: {name} is {'let in again' if active else 'not let in any more'}.")
        return redirect("user", pk=pk)
    tokens = plural(person.token_count, "valid token,valid tokens")  # type: ignore[attr-defined]
    headline = f"{name} is let in again" if active else f"{name} is let in no more"
    at_once = "Neither by password nor by session at once, nor by token within seconds."
    same = "With the role, the password and the tokens that they had."
    context = {
        "verb": verb,
        "thing": name,
        "headline": headline,
        "consequence": f"{same if active else at_once} They have {tokens}. What they did stays known.",
        "warnings": ["That is you: you will be signed out."] if person == request.user and not active else [],
        "plan": planned(lambda: set_user_active(actor_of(request), person, active=active)),
        "back": reverse("user", args=[pk]),
        "back_name": name,
        "leave": f"Don't {verb.lower()}",
        "button_kind": "primary" if active else "danger",
        "need_verb": WRITE,
        "need_resource": Resource.USERS,
    }
    return render(request, "parts/confirmation.html", context)
