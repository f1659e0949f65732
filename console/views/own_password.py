"""Somebody's own password: whoever knows the one they have gives themselves another."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.changes import of_field, refuse
from console.people_forms import OwnPasswordForm
from queueapi.actions.users import change_own_password
from queueapi.errors import ActionError


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest) -> HttpResponse:
    """Ends their other sessions. A wrong one counts as at sign-in, whatever becomes of the request: there is no plan,
    which would be undone with that it was tried."""
    form = OwnPasswordForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid() and _changed(request, form):
        messages.success(request, "Changed: you sign in with it from now on. Your other sessions have ended.")
        return redirect("own_password")
    return render(request, "users/own_password.html", {"form": form})


def _changed(request: HttpRequest, form: OwnPasswordForm) -> bool:
    given = form.cleaned_data
    try:
        user = change_own_password(actor_of(request), given["current"], given["password"])
    except ActionError as error:
        told = of_field(error.message)
        if told.keys() & form.fields.keys():
            form.add_error(*next(iter(told.items())))
        else:
            refuse(form, "Not changed", error)
        return False
    update_session_auth_hash(request, user)
    return True
