"""How requests are let in: by a token, by name and password, or by the session of a browser."""

import math
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, BasicAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from queueapi.access.backends import address_of
from queueapi.access.tokens import TOKENS
from queueapi.actions.sign_ins import locked_until
from queueapi.models import ApiToken

_BEARER = b"bearer"


class LockedOut(Throttled):
    """429, with when to try again."""

    default_code = "locked_out"
    extra_detail_singular = extra_detail_plural = "none is looked at for {wait} s"


class InvalidToken(AuthenticationFailed):
    default_code = "invalid_token"
    default_detail = "this token is unknown, revoked or expired, or whoever made it is no longer let in; use another"


class PasswordAuthentication(BasicAuthentication):
    """For people. It stands first, so that what it asks for is asked of who shows nothing."""

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> tuple[User, None]:
        until = locked_until(userid, address_of(request))
        if until is not None:
            seconds = math.ceil((until - timezone.now()).total_seconds())
            detail = f"too many wrong passwords for {userid!r} came from your address;"
            raise LockedOut(max(seconds, 1), detail)
        user, _ = super().authenticate_credentials(userid, password, request)
        return user, None

    def authenticate_header(self, request: Request) -> str:
        if get_authorization_header(request).lower().startswith(_BEARER):
            return 'Bearer realm="api", error="invalid_token"'
        return 'Basic realm="api", Bearer realm="api"'


class TokenAuthentication(BaseAuthentication):
    """For programs: `Authorization: Bearer swy_…`."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != _BEARER:
            return None
        token = TOKENS.find(parts[1].decode("latin-1")) if len(parts) == 2 else None
        if token is None:
            raise InvalidToken
        return token.created_by, token
