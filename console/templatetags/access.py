"""What whoever looks may do, so that a page offers it, or says why not."""

from typing import Any, Final

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.access import signed_in
from queueapi.access.table import Resource, Verb

register = template.Library()

_VERBS: Final = {Verb.READ: "see", Verb.OPERATE: "operate", Verb.WRITE: "change"}
# Nobody changes a message.
_PUBLISHING: Final = (Verb.WRITE, Resource.MESSAGES)


@register.simple_tag(takes_context=True)
def why_not(context: dict[str, Any], verb: str, resource: str) -> str:
    """Why they may not do that with it; empty: they may."""
    principal = signed_in(context["request"])
    wanted, thing = Verb(verb), Resource(resource)
    if principal is not None and principal.may(wanted, thing):
        return ""
    role = "no role" if principal is None else f"the role {principal.role.label.lower()}"
    what = "publish" if (wanted, thing) == _PUBLISHING else _VERBS[wanted]
    return f"You have {role}, which may not {what} {thing.replace('-', ' ')}"


@register.simple_tag
def off_because(reason: str, told_by: str) -> SafeString:
    """The attributes of a button that is off for this reason; none where there is no reason. A button that is off gets
    no focus, so that its title is for who points at it: `told_by` is the id of what others read."""
    return format_html(' disabled title="{}" aria-describedby="{}"', reason, told_by) if reason else SafeString()


@register.simple_tag(takes_context=True)
def needs(context: dict[str, Any], verb: str, resource: str, reason: str = "", told_by: str = "") -> SafeString:
    """The attributes of a button that is off for who may not do that, and for all if there is a reason. The page tells
    the former why by `why_not_note`."""
    if refusal := why_not(context, verb, resource):
        return off_because(refusal, _note_id(verb, resource))
    return off_because(reason, told_by)


@register.inclusion_tag("parts/why_not_note.html", takes_context=True)
def why_not_note(context: dict[str, Any], verb: str, resource: str) -> dict[str, Any]:
    """What tells why buttons are off that need this, once for all that are on the page."""
    return {"why": why_not(context, verb, resource), "id": _note_id(verb, resource)}


@register.inclusion_tag("parts/action_link.html", takes_context=True)
def action_link(
    context: dict[str, Any],
    url: str,
    label: str,
    verb: str,
    resource: str,
    kind: str = "",
    name: str = "",
) -> dict[str, Any]:
    """The way to a page that changes something, for those who may; for others a button that says why not. The page
    tells them why by `why_not_note`. `name` is its id, where it needs one."""
    why, told_by = why_not(context, verb, resource), _note_id(verb, resource)
    return {"url": url, "label": label, "kind": kind, "name": name, "why": why, "told_by": told_by}


def _note_id(verb: str, resource: str) -> str:
    return f"why-not-{verb}-{resource}"
