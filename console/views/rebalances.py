from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.access import actor_of
from console.balances import balance_tables, with_sources
from console.cluster_filters import RebalanceFilter
from console.confirming import confirmed
from console.lists import Sort
from console.live import render_live
from console.live_lists import LiveListPage
from console.move_flows import draw_moves
from queueapi.access.table import OPERATE, Resource
from queueapi.actions.rebalances import cancel_rebalance
from queueapi.choices import RebalanceState
from queueapi.cluster.models import Rebalance
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


@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would come of it; a POST does it."""
    rebalance = get_object_or_404(Rebalance, pk=pk)

    def act() -> str:
        cancel_rebalance(actor_of(request), rebalance.pk)
        return "Cancelling: what has not moved stays where it is."

    return confirmed(
        request, act, "Not cancelled", reverse("rebalance", args=[pk]), lambda: _asked_to_cancel(rebalance)
    )


def _asked_to_cancel(rebalance: Rebalance) -> dict[str, Any]:
    is_planned = rebalance.total > 0
    return {
        "verb": "Cancel",
        "thing": "the rebalance",
        "headline": f"{rebalance.done:,} of {rebalance.total:,} partitions have moved"
        if is_planned
        else "Nothing moved",
        "consequence": "What has not moved stays where it is; services that were to leave stay draining.",
        "why_not": _why_not_cancellable(rebalance).removesuffix("."),
        "back_name": "Rebalance",
        "leave": "Let it go on",
        "button_kind": "danger",
        "need_verb": OPERATE,
        "need_resource": Resource.REBALANCES,
    }


def _why_not_cancellable(rebalance: Rebalance) -> str:
    if rebalance.state_choice.is_final:
        return f"It is over: {rebalance.state_choice.label.lower()}."
    return "It is being cancelled already." if rebalance.is_unwanted else ""
