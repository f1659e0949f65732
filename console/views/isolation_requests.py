"""Requests for queues of a tenant's own: all of them, and one with its state, live. A tenant's people see theirs."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from console.access import actor_of, is_told_details, seen, viewer
from console.audit_changes import audited
from console.changes import carried_out
from console.isolation_filters import IsolationFilter
from console.isolation_forms import CommentForm, ReturnForm
from console.isolation_words import means_of
from console.lists import Sort
from console.live import render_live
from console.live_lists import LiveListPage
from queueapi.actions.isolation import comment_on_request
from queueapi.choices import CARRIED_OUT_ISOLATION_STATES, IsolationState
from queueapi.models import IsolationRequest
from queueapi.selectors.isolation import isolated_queues, isolation_requests
from queueapi.selectors.isolation_words import error_of, waits_for
from queueapi.selectors.tenants import recent_audit


class IsolationList(LiveListPage):
    template_name = "isolation_requests/list.html"
    part_name = "isolation_requests/rows.html"
    filter_class = IsolationFilter
    states = IsolationState
    default_sort = Sort("asked", descending=True)
    columns = {
        "asked": "created_at",
        "tenant": "tenant__name",
        "state": "state",
        "by": "requested_by_name",
        "decided": "decided_at",
    }

    def all_rows(self) -> QuerySet[Any]:
        return seen(self.request, isolation_requests().prefetch_related(None))

    def present(self, rows: Any) -> list[dict[str, Any]]:
        is_detailed = is_told_details(self.request)
        return [{"request": row, "waits_for": _waiting(row, is_detailed=is_detailed)} for row in rows]


@require_safe
def show_request(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The page; or its live part, or word to load the page again where the state is another than its page shows."""
    found = found_request(request, pk)
    if getattr(request, "htmx", False) and request.GET.get("state", found.state) != found.state:
        return HttpResponseClientRefresh()
    return show(request, found)


@require_POST
def comment(request: HttpRequest, pk: UUID) -> HttpResponse:
    found, form = found_request(request, pk), CommentForm(request.POST)
    made = carried_out(
        request, form, lambda: comment_on_request(actor_of(request), found, form.cleaned_data["text"]), "Not said"
    )
    if made is None:
        return show(request, found, comment_form=form)
    messages.success(request, "Said: whoever sees the request reads it.")
    return redirect("isolation_request", pk=pk)


def found_request(request: HttpRequest, pk: UUID) -> IsolationRequest:
    """Http404 for what they may not know of."""
    return get_object_or_404(seen(request, isolation_requests()), pk=pk)


def show(request: HttpRequest, found: IsolationRequest, **forms: Any) -> HttpResponse:
    """The page, with forms as they were filled in."""
    is_detailed = is_told_details(request)
    context = {
        "asked": found,
        "waits_for": _waiting(found, is_detailed=is_detailed),
        "error": error_of(found, is_detailed=is_detailed),
        "means": means_of(found),
        "is_under_way": found.state in CARRIED_OUT_ISOLATION_STATES,
        "is_own": found.requested_by_id == viewer(request).user_id,
        "comment_form": CommentForm(),
        "return_form": ReturnForm(),
        **forms,
    }
    if not getattr(request, "htmx", False):
        context |= {
            "queues": isolated_queues(found),
            "audit": audited(request, recent_audit("isolation_request", found.pk)) if is_detailed else [],
        }
    return render_live(request, "isolation_requests/page.html", "isolation_requests/live.html", context)


def _waiting(found: IsolationRequest, *, is_detailed: bool) -> str:
    return "a decision" if found.state == IsolationState.REQUESTED else waits_for(found, is_detailed=is_detailed)
