from django.http import HttpRequest, HttpResponse

from console.live import render_live
from console.problems import problems
from queueapi.selectors.overview import overview


def show_overview(request: HttpRequest) -> HttpResponse:
    seen = overview()
    return render_live(request, "overview/page.html", "overview/live.html", {"seen": seen, "problems": problems(seen)})
