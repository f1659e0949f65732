"""The table of rights: what follows from it without a request."""

import pytest

from queueapi.access.principals import Principal
from queueapi.access.secrets import digest_of, new_secret, prefix_of
from queueapi.access.table import OPERATE, READ, RIGHTS, SCOPES, WRITE, Resource, allows, is_within, scopes_of
from queueapi.choices import Role

ADMIN, OPERATOR, AUDITOR, TENANT_ADMIN, VIEWER = Role


def test_every_resource_has_its_rights_and_administrators_have_all_of_them() -> None:
    assert RIGHTS.keys() == set(Resource)
    assert all(ADMIN in roles for verbs in RIGHTS.values() for roles in verbs.values())


def test_auditors_and_viewers_change_nothing() -> None:
    for role in (AUDITOR, VIEWER):
        assert not any(allows(role, verb, resource) for resource in Resource for verb in (OPERATE, WRITE))


@pytest.mark.parametrize(
    ("role", "other", "within"),
    [
        (VIEWER, TENANT_ADMIN, True),
        (TENANT_ADMIN, OPERATOR, True),
        (OPERATOR, ADMIN, True),
        (ADMIN, OPERATOR, False),
        (AUDITOR, OPERATOR, False),
        (TENANT_ADMIN, VIEWER, False),
    ],
)
def test_whose_rights_hold_another_roles(role: Role, other: Role, within: bool) -> None:
    assert is_within(role, other) is within


def test_scopes_are_a_closed_list_of_what_can_be_read_or_changed() -> None:
    assert {"queues:read", "queues:write", "messages:write", "audit:read"} <= set(SCOPES)
    assert "audit:write" not in SCOPES
    assert "users:read" not in scopes_of(TENANT_ADMIN)
    assert all(scope.endswith(":read") for scope in scopes_of(VIEWER))


def test_who_has_a_token_may_what_its_scopes_its_role_and_its_maker_allow() -> None:
    token = Principal(1, (OPERATOR, ADMIN), None, frozenset({"queues:write", "users:write"}))
    assert token.may(OPERATE, Resource.QUEUES)
    assert not token.may(READ, Resource.QUEUES), "no scope"
    assert not token.may(WRITE, Resource.QUEUES), "its maker may not"
    assert (token.role, token.effective_scopes) == (OPERATOR, {"queues:write"})


def test_a_secret_is_found_by_its_beginning_and_known_by_its_hash() -> None:
    secret = new_secret()
    assert prefix_of(secret.text) == secret.prefix
    assert secret.text.startswith(secret.prefix)
    assert secret.digest == digest_of(secret.text)
    assert new_secret().text != secret.text


@pytest.mark.parametrize(
    "text", ["", "swy_", "swy_0123abcd", "swy_0123abcd_short", "abc_0123abcd_" + "x" * 43, "é" * 60]
)
def test_what_is_no_token_is_not_looked_for(text: str) -> None:
    assert prefix_of(text) is None
