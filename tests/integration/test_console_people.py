"""The pages of tokens and users."""

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from console.scopes import WORDS, scope_rows
from queueapi.access.table import SCOPES, Resource, scopes_of
from queueapi.actions.actor import SYSTEM
from queueapi.actions.tenants import create_tenant, ensure_system_tenant
from queueapi.actions.tokens import revoke_token
from queueapi.choices import Role
from queueapi.models import Account, ApiToken, AuditEntry, Tenant
from queuecore.topics import SYSTEM_TENANT
from tests.console_pages import queries_of
from tests.page_forms import confirm
from tests.people import PASSWORD, bearer, person, token_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"
MOST_QUERIES = 13


@pytest.fixture(autouse=True)
def _quick_passwords(settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ada() -> User:
    return person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def browser(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(SYSTEM, "Acme")


def words_of(response: HttpResponse) -> str:
    """What a person reads, on one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def seen(browser: Client, name: str, *args: Any, **query: Any) -> str:
    answered = browser.get(reverse(name, args=args), query)
    assert answered.status_code == 200
    return words_of(answered)


def rows_of(browser: Client, name: str, **query: Any) -> str:
    return browser.get(reverse(name), query).content.decode().partition("<tbody>")[2]


def send(browser: Client, name: str, /, *args: Any, **data: Any) -> str:
    return words_of(browser.post(reverse(name, args=args), data, follow=True))


def make(browser: Client, **data: Any) -> HttpResponse:
    asked = {"name": "nightly", "lasts": "90 days", "role": "administrator", "what": "read", **data}
    return browser.post(reverse("create_token"), asked)


def shown_secret(page: HttpResponse) -> str:
    found = re.search(r'id="secret"[^>]*value="([^"]+)"', page.content.decode())
    assert found
    return found[1]


# Tokens


def test_no_tokens_yet(browser) -> None:
    assert "No tokens yet" in seen(browser, "tokens")


def test_a_token_is_shown_once_and_works(browser) -> None:
    page = make(browser)
    assert "never shown again" in words_of(page)
    assert "no-store" in page.headers["Cache-Control"]
    secret = shown_secret(page)
    assert bearer(secret).get("/api/v1/queues").status_code == 200
    assert bearer(secret).post("/api/v1/tokens", {"name": "x", "scopes": []}, format="json").status_code == 403
    for name in ("tokens", "audit"):
        assert secret not in browser.get(reverse(name)).content.decode()
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    assert set(token.scopes) == {scope for scope in scopes_of(Role.ADMINISTRATOR) if scope.endswith(":read")}


@pytest.mark.parametrize(
    ("asked", "scopes"),
    [
        ({"what": "all", "role": "auditor"}, scopes_of(Role.AUDITOR)),
        ({"what": "chosen", "scopes": ["queues:read", "lag:read"]}, {"queues:read", "lag:read"}),
    ],
)
def test_a_token_may_what_is_chosen(browser, asked, scopes) -> None:
    make(browser, lasts="for ever", **asked)
    token = ApiToken.objects.get()
    assert set(token.scopes) == set(scopes)
    assert token.expires_at is None


def test_a_token_for_a_tenants_programs(browser, tenant) -> None:
    make(browser, role="tenant_viewer", tenant=str(tenant.pk))
    token = ApiToken.objects.get()
    assert (token.tenant, token.role) == (tenant, "tenant_viewer")
    assert "Acme" in seen(browser, "tokens")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"what": "chosen"}, "scopes: name at least one"),
        ({"role": "tenant_viewer"}, "name its tenant"),
        ({"what": "chosen", "role": "auditor", "scopes": ["queues:write"]}, "has no use for queues:write"),
        ({"what": "chosen", "scopes": ["moon:read"]}, "Select a valid choice"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused_and_stays_typed(browser, asked, told) -> None:
    page = make(browser, name="typed", **asked)
    assert told in words_of(page)
    assert 'value="typed"' in page.content.decode()
    assert not ApiToken.objects.exists()


def test_operators_give_no_more_than_they_may_and_see_their_own(client, ada) -> None:
    token_of(ada, ["queues:read"])
    client.force_login(person("bob", Role.OPERATOR))
    form = client.get(reverse("create_token")).content.decode()
    assert 'value="operator"' in form
    assert 'value="administrator"' not in form
    assert "Select a valid choice" in words_of(make(client, role="administrator"))
    make(client, role="operator", name="mine")
    shown = seen(client, "tokens")
    assert "mine" in shown
    assert "ada" not in shown
    assert "These are your own." in shown


def test_tokens_are_narrowed_down(browser, ada) -> None:
    valid, secret = token_of(ada, ["queues:read"])
    revoked, _ = token_of(ada, ["queues:read"])
    expired, _ = token_of(ada, ["queues:read"])
    revoke_token(SYSTEM, revoked)
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(days=1))
    for asked, there in (
        ({"life": "valid"}, valid),
        ({"life": "revoked"}, revoked),
        ({"life": "expired"}, expired),
        ({"q": valid.prefix}, valid),
        ({"q": secret}, valid),
    ):
        rows = rows_of(browser, "tokens", **asked)
        assert [one for one in (valid, revoked, expired) if f"{one.prefix}…" in rows] == [there], asked
    assert "No tokens match" in seen(browser, "tokens", q="nobody")


def test_a_token_is_revoked_after_a_look(browser, ada, django_capture_on_commit_callbacks) -> None:
    token, secret = token_of(ada, ["queues:read"])
    bearer(secret).get("/api/v1/queues")
    assert "cannot be taken back" in seen(browser, "revoke_token", token.pk)
    with django_capture_on_commit_callbacks(execute=True):
        assert "Revoked: test." in send(browser, "revoke_token", token.pk)
    assert bearer(secret).get("/api/v1/queues").status_code == 401
    assert "It is revoked already" in browser.get(reverse("tokens")).content.decode()


def test_what_is_not_seen_is_not_revoked(client, ada) -> None:
    token, _ = token_of(ada, ["queues:read"])
    client.force_login(person("bob", Role.OPERATOR))
    assert client.post(reverse("revoke_token", args=[token.pk])).status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None


def test_every_scope_is_explained() -> None:
    assert set(WORDS) == set(Resource)
    boxes = [box for row in scope_rows(["queues:read"]) for box in (row.read, row.write) if box]
    assert {box.scope for box in boxes} == set(SCOPES)
    assert [box.scope for box in boxes if box.is_chosen] == ["queues:read"]


# Users


def test_users_are_listed_with_what_they_are_here_to_do(browser, tenant, ada) -> None:
    person("gus", Role.TENANT_ADMIN, tenant)
    User.objects.create_user("nobody")
    User.objects.create_superuser("root")
    token_of(ada, ["queues:read"])
    shown = seen(browser, "users")
    for text in ("gus", "Tenant administrator", "Acme", "No role", "Let in", "never", "you"):
        assert text in shown, text


def test_users_are_narrowed_down(browser, tenant) -> None:
    person("gus", Role.TENANT_ADMIN, tenant)
    User.objects.filter(pk=person("old", Role.OPERATOR).pk).update(is_active=False)
    for asked, there, gone in (
        ({"q": "GU"}, "gus", "old"),
        ({"role": "operator"}, "old", "gus"),
        ({"tenant": str(tenant.pk)}, "gus", "old"),
        ({"tenant": tenant.name.lower()}, "gus", "old"),
        ({"active": "false"}, "old", "gus"),
    ):
        rows = rows_of(browser, "users", **asked)
        assert f">{there}<" in rows, asked
        assert f">{gone}<" not in rows, asked


def test_a_user_is_created_and_can_sign_in(browser, client, tenant) -> None:
    data = {"name": "gus", "password": PASSWORD, "role": "tenant_admin", "tenant": str(tenant.pk)}
    assert "Created: gus can sign in." in send(browser, "create_user", **data)
    assert Account.objects.get(user__username="gus").tenant == tenant
    assert Client().login(username="gus", password=PASSWORD)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"password": "12345"}, "This password is too short"),
        ({"role": "tenant_admin"}, "is of one tenant; name it"),
        ({"role": "tenant_admin", "tenant": "Nowhere"}, "There is no tenant &#x27;Nowhere&#x27;"),
        ({"role": "tenant_admin", "tenant": str(SYSTEM_TENANT)}, "leave it empty, or name another tenant"),
        ({"name": "ada"}, "A user with that username already exists"),
    ],
)
def test_a_user_who_cannot_be_is_refused_and_stays_typed(browser, typed, told) -> None:
    ensure_system_tenant()
    sent = {"name": "typed", "password": PASSWORD, "role": "operator", **typed}
    page = browser.post(reverse("create_user"), sent)
    assert told in words_of(page)
    assert f'value="{sent["name"]}"' in page.content.decode()
    assert sent["password"] not in page.content.decode()
    assert not User.objects.filter(username="typed").exists()


def test_a_role_is_planned_and_changed(browser) -> None:
    bob = person("bob", Role.OPERATOR)
    planned = send(browser, "change_user_role", bob.pk, role="auditor")
    assert "Role operator auditor" in planned
    assert Account.objects.get(user=bob).role == "operator"
    address = reverse("change_user_role", args=[bob.pk])
    assert "Changed: it holds" in words_of(confirm(browser, address, {"role": "auditor"}))
    assert Account.objects.get(user=bob).role == "auditor"


def test_the_last_administrator_stays(browser, ada) -> None:
    assert "is the last administrator" in send(browser, "change_user_role", ada.pk, role="operator")
    assert "is the last administrator" in seen(browser, "lock_user", ada.pk)
    assert "Not locked: ada is the last administrator" in send(browser, "lock_user", ada.pk)


def test_a_user_is_locked_and_unlocked_after_a_look(browser) -> None:
    bob = person("bob", Role.OPERATOR)
    assert "bob is let in no more" in seen(browser, "lock_user", bob.pk)
    assert "Locked: bob is not let in any more." in send(browser, "lock_user", bob.pk)
    bob.refresh_from_db()
    assert not bob.is_active
    assert "With the role, the password and the tokens that they had." in seen(browser, "unlock_user", bob.pk)
    assert "Unlocked: bob is let in again." in send(browser, "unlock_user", bob.pk)


def test_whoever_locks_themselves_is_warned(browser, ada) -> None:
    person("eva", Role.ADMINISTRATOR)
    assert "That is you" in seen(browser, "lock_user", ada.pk)


def test_a_password_is_set_and_ones_own_session_stays(browser, ada) -> None:
    assert "This password is too short" in send(browser, "set_user_password", ada.pk, password="short")
    assert "Set: ada signs in with it" in send(browser, "set_user_password", ada.pk, password=PASSWORD)
    assert browser.get(reverse("users")).status_code == 200
    assert Client().login(username="ada", password=PASSWORD)


@pytest.mark.parametrize("role", list(Role))
def test_everybody_changes_their_own_password_and_stays_signed_in(client, tenant, role) -> None:
    bob = person("bob", role, tenant if role.is_of_tenant else None)
    bob.set_password(PASSWORD)
    bob.save()
    elsewhere = Client()
    for one in (client, elsewhere):
        one.force_login(bob)
    assert f'href="{reverse("own_password")}"' in client.get(reverse("overview")).content.decode()
    typed = {"current": PASSWORD, "password": "staple battery", "repeated": "staple battery"}
    assert "Changed: you sign in with it from now on" in send(client, "own_password", **typed)
    assert client.get(reverse("overview")).status_code == 200
    assert elsewhere.get(reverse("overview")).status_code == 302
    assert Client().login(username="bob", password="staple battery")
    assert not Client().login(username="bob", password=PASSWORD)
    assert AuditEntry.objects.filter(actor_name="bob", action="set_password").count() == 1


@pytest.mark.parametrize(
    ("typed", "field", "told"),
    [
        ({"current": "another"}, "current", "this is not your password"),
        ({"password": "12345", "repeated": "12345"}, "password", "This password is too short"),
        ({"repeated": "staple"}, "repeated", "This is another one"),
        ({"current": ""}, "current", "This field is required"),
    ],
)
def test_a_password_that_is_refused_says_why_at_its_field(browser, ada, typed, field, told) -> None:
    ada.set_password(PASSWORD)
    ada.save()
    browser.force_login(ada)
    sent = {"current": PASSWORD, "password": "staple battery", "repeated": "staple battery", **typed}
    page = browser.post(reverse("own_password"), sent)
    assert told in "".join(page.context["form"].errors[field])
    assert not [value for value in sent.values() if value and value in page.content.decode()]
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


def test_no_password_is_guessed_by_the_page(browser, ada, settings) -> None:
    """Not by plans either: there is none."""
    ada.set_password(PASSWORD)
    ada.save()
    browser.force_login(ada)
    sent = {"password": "staple battery", "repeated": "staple battery", "plan": "yes"}
    for number in range(10):
        send(browser, "own_password", current=f"guess {number}", **sent)
    assert "too many were wrong" in send(browser, "own_password", current=PASSWORD, **sent)
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


# Who may


def pages(ada: User) -> list[str]:
    token, _ = token_of(ada, ["queues:read"])
    named = [reverse(name) for name in ("tokens", "create_token", "users", "create_user")]
    of_one = ("user", "change_user_role", "set_user_password", "lock_user", "unlock_user")
    return [*named, reverse("revoke_token", args=[token.pk]), *(reverse(name, args=[ada.pk]) for name in of_one)]


def test_auditors_look_and_change_nothing(client, ada) -> None:
    client.force_login(person("eve", Role.AUDITOR))
    urls = pages(ada)
    assert {client.get(url).status_code for url in urls} == {200}
    changing = [url for url in urls if url not in (reverse("tokens"), reverse("users"), reverse("user", args=[ada.pk]))]
    assert {client.post(url).status_code for url in changing} == {403}
    assert "which may not change users" in seen(client, "create_user")
    assert not AuditEntry.objects.filter(actor_name="eve").exists()


def test_operators_do_not_know_of_users(client, ada) -> None:
    client.force_login(person("bob", Role.OPERATOR))
    for url in pages(ada):
        if "/users/" in url:
            assert client.get(url).status_code == 403
    shown = client.get(reverse("overview")).content.decode()
    assert reverse("tokens") in shown
    assert f'href="{reverse("users")}"' not in shown


@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.TENANT_VIEWER])
def test_tenants_people_know_of_no_users_nor_of_others_tokens(client, ada, tenant, role) -> None:
    client.force_login(person("gus", role, tenant))
    users = [url for url in pages(ada) if "/users/" in url]
    theirs = [reverse("tokens"), reverse("create_token")]
    others = [url for url in pages(ada) if url not in (*users, *theirs)]
    is_admin = role == Role.TENANT_ADMIN
    assert {client.get(url).status_code for url in users} == {403}
    assert {client.get(url).status_code for url in theirs} == {200 if is_admin else 403}
    assert {client.get(url).status_code for url in others} == {404 if is_admin else 403}


def test_strangers_are_sent_to_sign_in(client, ada) -> None:
    assert {client.post(url).status_code for url in pages(ada)} == {302}


def test_what_people_typed_is_only_ever_text(browser, ada) -> None:
    token, _ = token_of(ada, ["queues:read"])
    ApiToken.objects.filter(pk=token.pk).update(name=HOSTILE)
    for url in (reverse("tokens"), reverse("revoke_token", args=[token.pk])):
        assert HOSTILE not in browser.get(url).content.decode()
    assert HOSTILE not in make(browser, name=HOSTILE).content.decode()


@pytest.mark.parametrize("name", ["tokens", "users"])
def test_lists_ask_the_database_as_often_for_many_rows_as_for_few(browser, django_assert_max_num_queries, name) -> None:
    asked = []
    for rows in (2, 20):
        for number in range(rows):
            one = create_tenant(SYSTEM, f"t{rows} {number}")
            token_of(person(f"p{rows} {number}", Role.TENANT_ADMIN, one), ["queues:read"])
        with django_assert_max_num_queries(MOST_QUERIES) as queries:
            seen(browser, name, size="100")
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_details_ask_the_database_a_bounded_number_of_times(browser, ada) -> None:
    for url in pages(ada):
        assert queries_of(partial(browser.get, url)) <= MOST_QUERIES
