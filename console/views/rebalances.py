from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from console.access import actor_of
from console.balances import balance_tables, with_sources
from console.cluster_filters import RebalanceFilter
from console.lists import Sort
from console.live import render_live
from console.live_lists import LiveListPage
from console.move_flows import draw_moves
from queueapi.actions.rebalances import cancel_rebalance
from queueapi.choices import RebalanceState
from queueapi.cluster.models import Rebalance
from queueapi.errors import ActionError
from queueapi.selectors.rebalances import operation_of, rebalances
from queueapi.selectors.services import living

_MOVES_SHOWN: Final = 100


class RebalanceList(LiveListPage):
    template_name = "rebalances/list.html"
    part_name = "rebalances/rows.html"
    filter_class = RebalanceFilter
    states = RebalanceState
    default_sort = Sort("created", descending=True)
    columns = {
        "created": "created_at",
        "reason": "reason",
        "state": "state",
        "cause": "cause",
        "moves": "moves",
        "pause": "pause_ms",
    }

    def all_rows(self) -> QuerySet[Any]:
        return rebalances()


def show_rebalance(request: HttpRequest, pk: UUID) -> HttpResponse:
    rebalance = get_object_or_404(Rebalance, pk=pk)
    moves = rebalance.moves_listed
    # Of very many not all are listed: then nobody can be counted by them.
    is_whole = len(moves) == rebalance.moves
    context = {
        "rebalance": rebalance,
        "operation": operation_of(rebalance.pk),
        "moves": moves[:_MOVES_SHOWN],
        "flow": draw_moves(moves),
        "tables": balance_tables(
            with_sources(rebalance.balance, moves if is_whole else []),
            after="After" if rebalance.state == RebalanceState.DONE else "As planned",
        ),
        "why_not_cancellable": _why_not_cancellable(rebalance),
        "waits_for_a_host": rebalance.state == RebalanceState.PLANNED and not living().exists(),
    }
    is_final = rebalance.state_choice.is_final
    return render_live(request, "rebalances/page.html", "rebalances/live.html", context, is_final=is_final)


@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the rebalance's page, which says what came of it."""
    rebalance = get_object_or_404(Rebalance, pk=pk)
    try:
        cancel_rebalance(actor_of(request), rebalance.pk)
    except ActionError as error:
        messages.error(request, f"Not cancelled: {error.message}.")
    else:
        messages.success(request, "Cancelling: what has not moved stays where it is.")
    return redirect("rebalance", pk=rebalance.pk)


def _why_not_cancellable(rebalance: Rebalance) -> str:
    if rebalance.state_choice.is_final:
        return f"It is over: {rebalance.state_choice.label.lower()}."
    return "It is being cancelled already." if rebalance.is_unwanted else ""
