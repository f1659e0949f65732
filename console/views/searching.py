"""Search over all kinds of things: a page, or only what was found while somebody types."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from console.access import viewer
from console.live import render_live
from console.searching import count, found


@require_safe
def show_search(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "")
    kinds = found(viewer(request), text)
    context = {"text": text, "kinds": kinds, "hit_count": count(kinds)}
    return render_live(request, "search/page.html", "search/results.html", context)
