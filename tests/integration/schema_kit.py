"""Sends what schemathesis makes up through the whole stack, as every role and as nobody, and undoes what came of it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import requests
import schemathesis
from asgiref.sync import async_to_sync
from django.core.signals import request_finished
from django.db import close_old_connections, transaction
from django.http import StreamingHttpResponse
from django.test import TestCase
from rest_framework.test import APIClient
from schemathesis.core.parameters import ParameterLocation

from queueapi.choices import Role
from queueapi.models import Tenant
from tests.people import api_of, person
from tests.rest_kit import Caller

NOBODY: Final = "nobody"
_HOST: Final = "http://testserver"


def requesters(tenant: Tenant) -> dict[str, APIClient]:
    """One of each role, the tenant's of this tenant, and nobody."""
    owners = {Role.TENANT_ADMIN: tenant, Role.TENANT_VIEWER: tenant}
    clients = {role.value: api_of(person(f"{role}.s", role, owners.get(role))) for role in Role}
    clients[NOBODY] = APIClient()
    for client in clients.values():
        # What goes wrong is an answer here.
        client.raise_request_exception = False
    return clients


@contextmanager
def undone() -> Iterator[None]:
    """What changes within is rolled back, and what waited for the commit was done before. Not in the cluster's own
    database: threads that use it have connections of their own, and would wait for this one."""
    with transaction.atomic():
        with TestCase.captureOnCommitCallbacks(execute=True):
            yield
        transaction.set_rollback(True)


def ground(case: schemathesis.Case, caller: Caller) -> None:
    """Asks it of what is there, as the table of `rest_kit` does. What is wrong with the case stays as it is."""
    if not _is_wrong(case, ParameterLocation.PATH):
        case.path_parameters = _path_parameters(case.path, caller.path)
    if not _is_wrong(case, ParameterLocation.BODY) and isinstance(case.body, dict):
        case.body = {**case.body, **(caller.body or {})}
    if not _is_wrong(case, ParameterLocation.HEADER):
        # One that was made up matches nothing.
        case.headers.pop("If-Match", None)


def carry_out(case: schemathesis.Case) -> bool:
    """Instead of planning it. Whether it was to be planned."""
    return not _is_wrong(case, ParameterLocation.QUERY) and case.query.pop("dry_run", None) is not None


def send(case: schemathesis.Case, client: APIClient) -> schemathesis.Response:
    """As over a network, but within this process and its transaction."""
    asked = requests.Request(**case.as_transport_kwargs(base_url=_HOST)).prepare()
    url = urlsplit(asked.url or "")
    headers = {name: value for name, value in asked.headers.items() if name not in ("Content-Type", "Cookie")}
    kind = asked.headers.get("Content-Type", "")
    answer = client.generic(
        asked.method or "", url.path, asked.body or b"", kind, headers=headers, QUERY_STRING=url.query
    )
    told = {name: [value] for name, value in answer.items()}
    return schemathesis.Response(answer.status_code, told, _content(answer), asked, 0.0, verify=False)


def _is_wrong(case: schemathesis.Case, where: ParameterLocation) -> bool:
    told = case.meta.components.get(where) if case.meta else None
    return told is not None and told.mode.is_negative


def _path_parameters(template: str, path: str) -> Mapping[str, str]:
    pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", template)
    found = re.fullmatch(pattern, path.split("?")[0])
    assert found, f"the table of rest_kit calls {template} at {path}"
    return {name: unquote(value) for name, value in found.groupdict().items()}


def _content(answer: Any) -> bytes:
    if not isinstance(answer, StreamingHttpResponse):
        return bytes(answer.content)
    if not answer.is_async:
        return b"".join(answer)
    try:
        return async_to_sync(_beginning)(answer)
    finally:
        _close(answer)


async def _beginning(answer: StreamingHttpResponse) -> bytes:
    """Of what is sent for as long as somebody listens."""
    async for chunk in answer:
        return bytes(chunk)
    return b""


def _close(answer: StreamingHttpResponse) -> None:
    """As a client that goes; the connection, and with it the transaction, stays."""
    request_finished.disconnect(close_old_connections)
    try:
        answer.close()
    finally:
        request_finished.connect(close_old_connections)
