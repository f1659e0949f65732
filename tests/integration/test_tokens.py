"""API tokens: what they are let in for, and until when."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.access.secrets import digest_of
from queueapi.access.tokens import REMEMBERED_S, TOKENS, TokenFinder
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.tenants import create_tenant
from queueapi.actions.tokens import create_token, revoke_token
from queueapi.actions.users import set_user_active, set_user_role
from queueapi.choices import Role
from queueapi.errors import InvalidInput, NotAllowed
from queueapi.models import ApiToken, AuditEntry
from queuecore.testing.clock import ManualClock
from tests.people import api_of, bearer, person, token_of

URL, QUEUES = "/api/v1/tokens", "/api/v1/queues"


@pytest.fixture(autouse=True)
def _nothing_remembered():
    yield
    TOKENS.forget()


@pytest.fixture
def root(installation):
    return person("root", Role.ADMINISTRATOR)


@pytest.fixture
def api(root) -> APIClient:
    return api_of(root)


def test_a_token_is_shown_once_and_kept_as_a_hash(api, root) -> None:
    answer = api.post(URL, {"name": "ci", "scopes": ["queues:read"]})
    assert (answer.status_code, answer["cache-control"]) == (201, "no-store")
    made = answer.json()
    token = ApiToken.objects.get(id=made["id"])
    assert made["token"].startswith(f"{token.prefix}_")
    assert (token.digest, token.created_by) == (digest_of(made["token"]), root)
    [listed] = api.get(URL).json()["results"]
    assert (listed["prefix"], listed["role"], listed["created_by"]) == (token.prefix, "administrator", "root")
    secret = made["token"].removeprefix(token.prefix)
    assert secret not in api.get(URL).content.decode()
    entry = AuditEntry.objects.get(object_type="token")
    assert (entry.action, entry.after["scopes"]) == ("create", ["queues:read"])
    assert secret not in str(entry.after)
    assert bearer(made["token"]).get(QUEUES).status_code == 200


def test_a_token_expires_in_time_unless_somebody_says_never(api) -> None:
    asked = {"name": "ci", "scopes": ["queues:read"]}
    expires = ApiToken.objects.get(id=api.post(URL, asked).json()["id"]).expires_at
    assert expires is not None
    assert timedelta(days=89) < expires - timezone.now() < timedelta(days=91)
    assert api.post(URL, {**asked, "expires_at": None}).json()["expires_at"] is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": " "}, "may not be blank"),
        ({"scopes": []}, "name at least one of"),
        ({"scopes": ["queues:delete"]}, "there is no 'queues:delete'; choose of"),
        ({"role": "auditor", "scopes": ["queues:write"]}, "the role auditor has no use for queues:write"),
        ({"role": "tenant_admin"}, "name its tenant"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "is over; name a time to come"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused_with_what_would(api, change, told) -> None:
    answer = api.post(URL, {"name": "ci", "scopes": ["queues:read"], **change})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert told in answer.content.decode()


def test_nobody_makes_a_token_that_may_more_than_they(installation) -> None:
    ada = person("ada", Role.OPERATOR)
    with pytest.raises(NotAllowed, match="may more than operator, which is yours"):
        token_of(ada, ["users:write"], role=Role.ADMINISTRATOR)
    with pytest.raises(InvalidInput, match="has no use for users:write"):
        token_of(ada, ["users:write"])
    eve = person("eve", Role.TENANT_ADMIN, installation.tenant)
    with pytest.raises(NotAllowed, match="for their own tenant"):
        token_of(eve, ["queues:read"], tenant=create_tenant(SYSTEM, "Foundry"))
    token, _ = token_of(eve, ["queues:read"], role=Role.TENANT_VIEWER)
    assert token.tenant_id == installation.tenant.id


def test_a_token_makes_no_tokens(root) -> None:
    _, secret = token_of(root, ["tokens:write"])
    answer = bearer(secret).post(URL, {"name": "ci", "scopes": ["tokens:write"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    with pytest.raises(NotAllowed):
        create_token(Actor("root"), "ci", ["queues:read"], expires_at=None)


def test_scopes_say_what_a_token_is_for(root) -> None:
    _, secret = token_of(root, ["queues:read"])
    api = bearer(secret)
    assert api.get(QUEUES).status_code == 200
    for answer in (api.post(QUEUES, {}), api.get("/api/v1/dead-letters")):
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert "use one with the scope dead-letters:read" in api.get("/api/v1/dead-letters").json()["detail"]


def test_a_tenants_token_sees_the_tenants_things(root, installation) -> None:
    _, secret = token_of(root, ["tenants:read"], role=Role.TENANT_VIEWER, tenant=installation.tenant)
    [tenant] = bearer(secret).get("/api/v1/tenants").json()["results"]
    assert tenant["id"] == str(installation.tenant.id)
    me = bearer(secret).get("/api/v1/me").json()
    assert (me["name"], me["role"], me["tenant"]) == ("root", "tenant_viewer", str(installation.tenant.id))
    assert (me["scopes"], me["token"]["name"]) == (["tenants:read"], "test")


def test_what_is_done_by_a_token_is_told_so(root, installation) -> None:
    token, secret = token_of(root, ["queues:write"])
    assert bearer(secret).post(f"{QUEUES}/telemetry/pause", {"reason": "x"}).status_code == 200
    entry = AuditEntry.objects.get(action="pause")
    assert (entry.token, entry.actor, entry.address) == (token, root, "127.0.0.1")


@pytest.mark.parametrize("shown", ["x", "", "swy_00000000_" + "x" * 43, "a b"])
def test_a_wrong_token_is_a_problem_that_says_how_to_come_in(installation, shown) -> None:
    answer = bearer(shown).get(QUEUES)
    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")
    assert answer["content-type"] == "application/problem+json"
    assert answer["www-authenticate"] == 'Bearer realm="api", error="invalid_token"'


def test_a_token_with_a_known_beginning_and_another_end_is_wrong(root) -> None:
    _, secret = token_of(root, ["queues:read"])
    changed = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    assert bearer(changed).get(QUEUES).status_code == 401


def test_strangers_are_told_both_ways_in(installation) -> None:
    assert APIClient().get(QUEUES)["www-authenticate"] == 'Basic realm="api", Bearer realm="api"'


def test_an_expired_token_is_out_even_where_it_is_remembered(root) -> None:
    token, secret = token_of(root, ["queues:read"])
    assert bearer(secret).get(QUEUES).status_code == 200
    remembered = TOKENS.find(secret)
    assert remembered is not None
    remembered.expires_at = timezone.now()
    assert bearer(secret).get(QUEUES).status_code == 401
    assert token.is_valid_at(timezone.now())


def test_a_token_is_asked_for_once_in_some_seconds(root) -> None:
    clock = ManualClock()
    finder = TokenFinder(clock)
    token, secret = token_of(root, ["queues:read"])
    assert finder.find(secret) == token
    with CaptureQueriesContext(connection) as asked:
        found = finder.find(secret)
        assert found is not None
        assert found.created_by.account.role == "administrator"
    assert not asked.captured_queries
    # Revoked by another process, which cannot make this one forget.
    ApiToken.objects.update(revoked_at=timezone.now())
    assert finder.find(secret) == token
    clock.advance(REMEMBERED_S)
    assert finder.find(secret) is None


def test_a_revoked_token_is_out_here_at_once(root, api) -> None:
    token, secret = token_of(root, ["queues:read"])
    assert bearer(secret).get(QUEUES).status_code == 200
    answer = api.post(f"{URL}/{token.id}/revoke")
    assert (answer.status_code, answer.json()["revoked_at"] is None) == (200, False)
    assert bearer(secret).get(QUEUES).status_code == 401
    revoke_token(SYSTEM, token)
    assert AuditEntry.objects.filter(action="revoke").count() == 1


def test_its_use_is_noted_once_a_minute(root) -> None:
    clock = ManualClock()
    finder = TokenFinder(clock)
    token, secret = token_of(root, ["queues:read"])
    for ago, is_noted in ((None, True), (timedelta(seconds=30), False), (timedelta(seconds=61), True)):
        before = None if ago is None else timezone.now() - ago
        ApiToken.objects.update(last_used_at=before)
        clock.advance(REMEMBERED_S)
        finder.find(secret)
        token.refresh_from_db()
        assert (token.last_used_at != before) is is_noted


def test_a_token_loses_what_its_maker_loses(root, installation) -> None:
    ada = person("ada", Role.ADMINISTRATOR)
    _, secret = token_of(ada, ["users:read", "queues:read"])
    assert bearer(secret).get("/api/v1/users").status_code == 200
    set_user_role(SYSTEM, ada, Role.OPERATOR)
    TOKENS.forget()
    assert bearer(secret).get("/api/v1/users").status_code == 403
    assert bearer(secret).get(QUEUES).status_code == 200
    set_user_role(SYSTEM, ada, Role.TENANT_ADMIN, installation.tenant)
    TOKENS.forget()
    assert bearer(secret).get("/api/v1/me").json()["tenant"] == str(installation.tenant.id)
    set_user_active(SYSTEM, ada, active=False)
    TOKENS.forget()
    assert bearer(secret).get(QUEUES).status_code == 401


def test_a_token_of_one_tenant_is_no_token_of_another(root, installation) -> None:
    ada = person("ada", Role.OPERATOR)
    _, secret = token_of(ada, ["queues:read"], role=Role.TENANT_ADMIN, tenant=installation.tenant)
    set_user_role(SYSTEM, ada, Role.TENANT_ADMIN, create_tenant(SYSTEM, "Foundry"))
    assert bearer(secret).get(QUEUES).status_code == 403


def test_operators_see_their_own_tokens(root) -> None:
    ada = person("ada", Role.OPERATOR)
    others, _ = token_of(root, ["queues:read"])
    own, _ = token_of(ada, ["queues:read"])
    assert [row["id"] for row in api_of(ada).get(URL).json()["results"]] == [str(own.id)]
    assert api_of(ada).post(f"{URL}/{others.id}/revoke").status_code == 404


def test_a_tenants_role_without_a_tenant_cannot_be(root) -> None:
    with pytest.raises(IntegrityError):
        ApiToken.objects.create(
            name="x", prefix="x", digest="x", scopes=[], role=Role.TENANT_ADMIN, created_by=root, expires_at=None
        )


def test_however_many_there_are_few_questions_are_asked(api, root) -> None:
    for number in range(20):
        token_of(person(f"p{number}", Role.OPERATOR), ["queues:read"])
    for path, most in ((URL, 1), ("/api/v1/users", 1), ("/api/v1/audit", 1)):
        with CaptureQueriesContext(connection) as asked:
            assert api.get(path).status_code == 200
        assert len(asked) <= most, path
