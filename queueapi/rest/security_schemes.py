"""How the documentation says that requests are let in. Imported for what it registers."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from queueapi.rest.authentication import PasswordAuthentication, TokenAuthentication


class PasswordScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = PasswordAuthentication
    name = "password"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002
        return {"type": "http", "scheme": "basic", "description": "A user's name and password."}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002
        told = "An API token, made at `/api/v1/tokens`. It may do what its scopes, its role and its maker's role allow."
        return {"type": "http", "scheme": "bearer", "description": told}
