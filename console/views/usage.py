"""What tenants used: all of them over some days, or a tenant's own by day."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.access import seen
from console.filters import ListFilter, search_box
from console.lists import ListPage, Sort
from console.usage_charts import usage_charts
from queueapi.models import Tenant, TenantUsageDay
from queueapi.selectors.freshness import pipeline_freshness
from queueapi.selectors.tenant_figures import quota_uses, today, usage_of
from queueapi.selectors.usage import names_of, usage_totals

_RANGES: Final = {"1": "Today", "7": "7 days", "30": "30 days", "90": "90 days"}
_USUAL: Final = "7"
OWN_DAYS: Final = 30


class UsageFilter(ListFilter):
    """The days are chosen beside it: they are looked at before anything is added up."""

    q = search_box("Search", "search", "Tenant")

    class Meta:
        model = TenantUsageDay
        fields: list[str] = []

    def search(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(tenant_id__in=Tenant.objects.filter(name__icontains=value).values("pk"))


class UsageList(ListPage):
    """Who used most first."""

    template_name = "usage/list.html"
    filter_class = UsageFilter
    default_sort = Sort("sent", descending=True)
    ties = ("tenant_id",)
    kept = (*ListPage.kept, "days")
    columns = {
        "sent": "all_sent",
        "bytes": "all_sent_bytes",
        "handled": "all_handled",
        "errors": "all_errors",
        "letters": "all_dead_letters",
        "stored": "most_stored_bytes",
    }

    def all_rows(self) -> QuerySet[Any]:
        return usage_totals(TenantUsageDay.objects.filter(day__gte=today() - timedelta(days=int(self._range()) - 1)))

    def present(self, rows: Iterable[Any]) -> list[dict[str, Any]]:
        listed = list(rows)
        names = names_of([row.tenant_id for row in listed])
        return [{"used": row, "name": names.get(row.tenant_id)} for row in listed]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        asked = self._range()
        since = today() - timedelta(days=int(asked) - 1)
        return super().get_context_data(
            **kwargs, ranges=_RANGES, asked=asked, since=since, freshness=pipeline_freshness()
        )

    def _range(self) -> str:
        asked = self.request.GET.get("days", _USUAL)
        return asked if asked in _RANGES else _USUAL


@require_safe
def show_own(request: HttpRequest) -> HttpResponse:
    tenant = seen(request, Tenant.objects.select_related("profile")).get()
    usage = usage_of(tenant.pk, OWN_DAYS)
    context = {
        "tenant": tenant,
        "days": list(reversed(usage)),
        "charts": usage_charts(usage, OWN_DAYS, today()),
        "quotas": quota_uses(tenant, usage),
        "shown": OWN_DAYS,
        "freshness": pipeline_freshness(),
    }
    return render(request, "own/usage.html", context)
