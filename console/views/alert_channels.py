from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console.access import actor_of
from console.alert_filters import ChannelFilter
from console.audit_changes import audited
from console.changes import planned, readable
from console.channel_forms import form_for, form_of
from console.lists import ListPage, Sort
from console.meanwhile import thing_of
from console.sent_forms import FormOf
from console.typed_secrets import TypedSecrets
from queueapi.access.table import Resource
from queueapi.actions.alert_channels import change_channel, create_channel, delete_channel, test_channel
from queueapi.actions.rehearsing import rehearse
from queueapi.alerting.channels import shown_options
from queueapi.change_plans import Change, ChangePlan
from queueapi.choices import ChannelKind
from queueapi.models import AlertChannel
from queueapi.selectors.alert_channels import channels_for_lists, deliveries_of, rules_telling
from queueapi.selectors.tenants import recent_audit
from queuecore.consuming.handler_options import HIDDEN

_DELIVERIES_SHOWN = 20


class ChannelList(ListPage):
    template_name = "alert_channels/list.html"
    filter_class = ChannelFilter
    default_sort = Sort("name", descending=False)
    columns = {"name": "name", "kind": "kind", "rules": "rule_count", "last": "last_at"}

    def all_rows(self) -> QuerySet[Any]:
        return channels_for_lists()


def show_channel(request: HttpRequest, pk: UUID) -> HttpResponse:
    channel = get_object_or_404(channels_for_lists(), pk=pk)
    context = {
        "channel": channel,
        "options": shown_options(channel.kind, channel.options),
        "rules": list(rules_telling(channel)),
        "deliveries": list(deliveries_of(channel)[:_DELIVERIES_SHOWN]),
        "audit": audited(request, recent_audit("alert_channel", pk)),
    }
    return render(request, "alert_channels/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """The form of a kind; a POST shows what would be, and then creates the channel."""
    asked = request.GET.get("kind", "")
    kind = ChannelKind(asked) if asked in ChannelKind.values else ChannelKind.EMAIL
    sent = FormOf(
        lambda data: form_of(kind, TypedSecrets(request.session), data),
        lambda form: create_channel(actor_of(request), kind=kind, **form.entered()),
        "Not created",
    ).sent(request)
    if sent.made is not None:
        sent.form.done()
        messages.success(request, f"Created: channel {sent.made.name}. Test it, then name it in rules.")
        return redirect("alert_channel", pk=sent.made.pk)
    return sent.show(request, "alert_channels/form.html", {"kind": kind, "kinds": list(ChannelKind)})


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: UUID) -> HttpResponse:
    """As `create`, of one that is there; its kind stays. Whoever comes second is shown what others have changed."""
    channel = get_object_or_404(AlertChannel, pk=pk)
    sent = FormOf(
        lambda data: form_for(get_object_or_404(AlertChannel, pk=pk), TypedSecrets(request.session), data),
        lambda form: change_channel(actor_of(request), channel, **form.entered()),
        "Not changed",
        thing_of("channel", channel, "alert_channel", kept_in="options", version=lambda: _version(pk)),
        plan=lambda form: _plan(lambda: change_channel(actor_of(request), channel, **form.entered())),
    ).sent(request)
    if sent.made is not None:
        sent.form.done()
        messages.success(request, "Changed. What waits goes there, too.")
        return redirect("alert_channel", pk=pk)
    return sent.show(request, "alert_channels/form.html", {"channel": channel, "kind": ChannelKind(channel.kind)})


@require_POST
def test(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Back to the channel's page, which says what came of it."""
    trial = test_channel(actor_of(request), get_object_or_404(AlertChannel, pk=pk))
    if trial.delivered:
        messages.success(request, f"Delivered within {trial.took_ms:,} ms: look whether it arrived.")
    else:
        messages.error(request, f"Not delivered, after {trial.took_ms:,} ms: {trial.error}.")
    return redirect("alert_channel", pk=pk)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What would be gone; a POST does it."""
    channel = get_object_or_404(AlertChannel, pk=pk)
    if request.method == "POST":
        delete_channel(actor_of(request), channel)
        messages.success(request, f"Deleted: channel {channel.name}. Rules tell it nothing more.")
        return redirect("alert_channels")
    plan = planned(lambda: delete_channel(actor_of(request), channel))
    plan = replace(plan, warnings=(*plan.warnings, *_told_nothing(channel)))
    back, needed = reverse("alert_channel", args=[pk]), Resource.ALERT_CHANNELS
    context = {"thing": channel, "back": back, "plan": plan, "need_resource": needed}
    return render(request, "parts/deletion.html", context)


def _plan(act: Callable[[], object]) -> ChangePlan:
    """Another secret looks as before, and is a change."""
    plan = rehearse(act)
    told = readable(plan)
    return replace(
        told, changes=told.changes or tuple(Change("secret or headers", HIDDEN, HIDDEN) for _ in plan.changes)
    )


def _version(pk: UUID) -> int:
    """Another secret makes another one as well."""
    return AlertChannel.objects.values_list("version", flat=True).get(pk=pk)


def _told_nothing(channel: AlertChannel) -> Iterator[str]:
    names = [rule.name for rule in rules_telling(channel)]
    if names:
        yield f"these rules tell it nothing more: {', '.join(names)}"
