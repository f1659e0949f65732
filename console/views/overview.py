from django.http import HttpRequest, HttpResponse

from console.approvals import approvals
from console.live import render_live
from console.problems import problems
from console.request_limits import exceeded
from queueapi.selectors.overview import overview


def show_overview(request: HttpRequest) -> HttpResponse:
    seen, waiting = overview(), approvals()
    context = {
        "seen": seen,
        "problems": [*problems(seen), *waiting.problems],
        "firing_alerts": seen.alerts.number,
        "isolations_to_decide": waiting.number,
        "requests_exceed": exceeded(seen.requests),
    }
    return render_live(request, "overview/page.html", "overview/live.html", context)
