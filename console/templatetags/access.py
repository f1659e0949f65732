"""What whoever looks may do, so that a page offers it, or says why not."""

from typing import Any, Final

from django import template

from console.access import signed_in
from queueapi.access.table import Resource, Verb

register = template.Library()

_VERBS: Final = {Verb.READ: "see", Verb.OPERATE: "operate", Verb.WRITE: "change"}


@register.simple_tag(takes_context=True)
def why_not(context: dict[str, Any], verb: str, resource: str) -> str:
    """Why they may not do that with it; empty: they may."""
    principal = signed_in(context["request"])
    wanted, thing = Verb(verb), Resource(resource)
    if principal is not None and principal.may(wanted, thing):
        return ""
    role = "no role" if principal is None else f"the role {principal.role.label.lower()}"
    return f"You have {role}, which may not {_VERBS[wanted]} {thing.replace('-', ' ')}"


@register.inclusion_tag("parts/action_link.html", takes_context=True)
def action_link(
    context: dict[str, Any], url: str, label: str, verb: str, resource: str, kind: str = ""
) -> dict[str, Any]:
    """The way to a page that changes something, for those who may; for others a button that says why not."""
    return {"url": url, "label": label, "kind": kind, "why": why_not(context, verb, resource)}
