"""People: what they are here to do, and who says so."""

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.actions.users import (
    create_user,
    ensure_administrator,
    set_user_active,
    set_user_password,
    set_user_role,
)
from queueapi.choices import Role
from queueapi.errors import InvalidInput, LastAdministrator
from queueapi.models import Account, AuditEntry, Tenant
from tests.people import PASSWORD, api_of, person

pytestmark = pytest.mark.django_db

URL = "/api/v1/users"


@pytest.fixture(autouse=True)
def _quick_passwords(settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def tenant() -> Tenant:
    return Tenant.objects.create(name="Greenhouse")


@pytest.fixture
def root() -> User:
    return person("root", Role.ADMINISTRATOR)


@pytest.fixture
def api(root) -> APIClient:
    return api_of(root)


def told(action: str) -> AuditEntry:
    return AuditEntry.objects.get(object_type="user", action=action)


def test_a_user_is_created_with_a_role_and_can_sign_in(api, tenant) -> None:
    body = {"name": "ada", "password": PASSWORD, "role": "tenant_admin", "tenant": str(tenant.id)}
    answer = api.post(URL, body)
    assert (answer.status_code, answer.json()["role"]) == (201, "tenant_admin")
    user = User.objects.get(username="ada")
    assert user.check_password(PASSWORD)
    assert (user.account.tenant, user.is_staff, user.is_superuser) == (tenant, False, False)
    entry = told("create")
    assert (entry.actor_name, entry.tenant_id) == ("root", tenant.id)
    assert entry.after == {"name": "ada", "role": "tenant_admin", "tenant": str(tenant.id)}


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ({"password": "1234"}, "too short"),
        ({"password": "switchyard-ada", "name": "switchyard-ada"}, "too similar to the username"),
        ({"name": "a b"}, "Enter a valid username"),
        ({"name": "root"}, "already exists"),
        ({"role": "king"}, "is not a valid choice"),
        ({"role": "tenant_viewer"}, "is of one tenant; name it"),
    ],
)
def test_what_cannot_be_a_user_is_refused_with_what_can(api, change, remedy) -> None:
    answer = api.post(URL, {"name": "ada", "password": PASSWORD, "role": "operator", **change})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert remedy in answer.content.decode()
    assert not User.objects.filter(username="ada").exists()


def test_a_tenant_is_named_exactly_for_its_roles(tenant) -> None:
    with pytest.raises(InvalidInput, match="leave the tenant out"):
        create_user(SYSTEM, "ada", PASSWORD, Role.AUDITOR, tenant)
    with pytest.raises(InvalidInput, match="and not the system's"):
        create_user(SYSTEM, "ada", PASSWORD, Role.TENANT_ADMIN, ensure_system_tenant())


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.TENANT_ADMIN])
def test_the_database_holds_no_other_account(role, tenant) -> None:
    user = User.objects.create_user("ada")
    with pytest.raises(IntegrityError):
        Account.objects.create(user=user, role=role, tenant=None if role.is_of_tenant else tenant)


def test_a_role_changes_and_who_changed_it_is_told(api, tenant) -> None:
    user = person("ada", Role.OPERATOR)
    answer = api.put(f"{URL}/{user.id}/role", {"role": "tenant_viewer", "tenant": str(tenant.id)})
    assert (answer.json()["role"], answer.json()["tenant"]) == ("tenant_viewer", str(tenant.id))
    entry = told("set_role")
    assert (entry.before["role"], entry.after["role"], entry.actor_name) == ("operator", "tenant_viewer", "root")
    set_user_role(SYSTEM, user, Role.TENANT_VIEWER, tenant)
    assert AuditEntry.objects.filter(action="set_role").count() == 1, "nothing has changed"


def test_the_last_administrator_stays_one(api, root) -> None:
    for answer in (api.put(f"{URL}/{root.id}/role", {"role": "auditor"}), api.post(f"{URL}/{root.id}/deactivate")):
        assert (answer.status_code, answer.json()["code"]) == (409, "last_administrator")
        assert "make somebody else one first" in answer.json()["detail"]
    root.refresh_from_db()
    assert (root.is_active, root.account.role) == (True, "administrator")


def test_who_is_not_let_in_is_no_other_administrator(root) -> None:
    second = person("ada", Role.ADMINISTRATOR)
    set_user_active(SYSTEM, second, active=False)
    with pytest.raises(LastAdministrator):
        set_user_active(SYSTEM, root, active=False)
    set_user_active(SYSTEM, second, active=True)
    set_user_role(SYSTEM, root, Role.AUDITOR)


def test_who_was_made_by_createsuperuser_is_an_administrator() -> None:
    superuser = User.objects.create_superuser("root")
    assert api_of(superuser).get("/api/v1/me").json()["role"] == "administrator"
    with pytest.raises(LastAdministrator):
        set_user_role(SYSTEM, superuser, Role.OPERATOR)
    person("ada", Role.ADMINISTRATOR)
    set_user_role(SYSTEM, superuser, Role.OPERATOR)
    assert api_of(User.objects.get(pk=superuser.pk)).get("/api/v1/me").json()["role"] == "operator"


def test_the_first_administrator_has_an_account() -> None:
    made = ensure_administrator("admin", PASSWORD)
    assert made.account.role == Role.ADMINISTRATOR
    assert ensure_administrator("admin", "another") == made


def test_a_deactivated_user_is_let_in_no_more_until_activated(api) -> None:
    user = create_user(SYSTEM, "ada", PASSWORD, Role.OPERATOR)
    client = APIClient()
    assert client.login(username="ada", password=PASSWORD)
    assert api.post(f"{URL}/{user.id}/deactivate").json()["active"] is False
    assert client.get("/api/v1/me").status_code == 401
    assert not client.login(username="ada", password=PASSWORD)
    assert api.post(f"{URL}/{user.id}/activate").json()["active"] is True
    assert client.login(username="ada", password=PASSWORD)
    assert [told("deactivate").actor_name, told("activate").actor_name] == ["root"] * 2


def test_a_new_password_ends_the_sessions(api) -> None:
    user = create_user(SYSTEM, "ada", PASSWORD, Role.OPERATOR)
    client = APIClient()
    client.login(username="ada", password=PASSWORD)
    assert api.put(f"{URL}/{user.id}/password", {"password": "1234"}).status_code == 400
    assert api.put(f"{URL}/{user.id}/password", {"password": "another horse battery"}).status_code == 204
    assert client.get("/api/v1/me").status_code == 401
    assert client.login(username="ada", password="another horse battery")
    assert "another" not in str([told("set_password").before, told("set_password").after])


def test_who_sets_their_own_password_stays_and_their_other_sessions_end() -> None:
    user = create_user(SYSTEM, "ada", PASSWORD, Role.ADMINISTRATOR)
    here, elsewhere = APIClient(), APIClient()
    for client in (here, elsewhere):
        client.login(username="ada", password=PASSWORD)
    assert here.put(f"{URL}/{user.id}/password", {"password": "another horse battery"}).status_code == 204
    assert (here.get("/api/v1/me").status_code, elsewhere.get("/api/v1/me").status_code) == (200, 401)


def test_users_are_found_by_role_tenant_and_whether_they_are_let_in(api, tenant) -> None:
    ada = person("ada", Role.TENANT_ADMIN, tenant)
    bob = person("bob", Role.OPERATOR)
    set_user_active(SYSTEM, bob, active=False)
    for asked, name in (({"role": "tenant_admin"}, ada), ({"tenant": str(tenant.id)}, ada), ({"active": "false"}, bob)):
        assert [row["id"] for row in api.get(URL, asked).json()["results"]] == [name.id]


def test_a_password_that_is_set_is_told_without_it() -> None:
    user = person("ada", Role.OPERATOR)
    set_user_password(Actor("root"), user, PASSWORD)
    assert (told("set_password").before, told("set_password").after) == (None, None)
    assert User.objects.get(pk=user.pk).check_password(PASSWORD)
