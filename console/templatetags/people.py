"""How users and tokens look."""

from django import template
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.safestring import SafeString

from console.templatetags.console import badge, tone_badge
from queueapi.access.principals import role_of
from queueapi.choices import Tone
from queueapi.models import ApiToken

register = template.Library()


@register.filter
def token_state(token: ApiToken) -> SafeString:
    if token.revoked_at is not None:
        return tone_badge("Revoked", Tone.QUIET.value)
    is_valid = token.is_valid_at(timezone.now())
    return tone_badge("Valid", Tone.GOOD.value) if is_valid else tone_badge("Expired", Tone.WARN.value)


@register.filter
def user_state(user: User) -> SafeString:
    return tone_badge("Let in", Tone.GOOD.value) if user.is_active else tone_badge("Locked", Tone.WARN.value)


@register.filter
def user_role(user: User) -> SafeString:
    """Also of who has no account, and may everything or nothing."""
    standing = role_of(user)
    return tone_badge("No role", Tone.WARN.value) if standing is None else badge(standing[0])
