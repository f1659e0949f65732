"""Signing in: who is locked out, for how long, and when a session ends."""

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from queueapi.actions.actor import SYSTEM
from queueapi.actions.sign_ins import locked_until, record_failure
from queueapi.actions.users import create_user
from queueapi.choices import Role
from queueapi.models import AuditEntry, SignInFailures
from tests.people import PASSWORD, bearer, token_of

pytestmark = pytest.mark.django_db

ME = "/api/v1/me"


@pytest.fixture(autouse=True)
def _installation(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.SWITCHYARD = replace(settings.SWITCHYARD, lockout_failures=3, lockout_minutes=10)


@pytest.fixture
def ada():
    return create_user(SYSTEM, "ada", PASSWORD, Role.ADMINISTRATOR)


def form(client: Client, password: str, address: str = "10.0.0.1") -> Any:
    return client.post(reverse("login"), {"username": "ada", "password": password}, REMOTE_ADDR=address)


def basic(password: str, address: str = "10.0.0.1") -> Any:
    shown = base64.b64encode(f"ada:{password}".encode()).decode()
    return APIClient().get(ME, HTTP_AUTHORIZATION=f"Basic {shown}", REMOTE_ADDR=address)


def lock_out(name: str = "ada", address: str = "10.0.0.1") -> None:
    for _ in range(3):
        record_failure(name, address)


def test_too_many_wrong_passwords_lock_the_form(client, ada) -> None:
    for _ in range(3):
        assert "correct username and password" in form(client, "wrong").content.decode()
    answer = form(client, PASSWORD)
    assert "Too many wrong passwords: wait 10 minutes, then try again." in answer.content.decode()
    entry = AuditEntry.objects.get(action="lock_out")
    assert (entry.actor_name, entry.address, entry.after["failures"]) == ("ada", "10.0.0.1", 3)


def test_too_many_wrong_passwords_lock_basic_with_when_to_come_again(ada) -> None:
    assert basic(PASSWORD).status_code == 200
    wrong = [basic("wrong") for _ in range(3)]
    assert [(answer.status_code, answer.json()["code"]) for answer in wrong] == [(401, "authentication_failed")] * 3
    answer = basic(PASSWORD)
    assert (answer.status_code, answer.json()["code"]) == (429, "locked_out")
    assert 590 <= int(answer["retry-after"]) <= 600
    assert "came from your address; none is looked at for" in answer.json()["detail"]
    assert answer["content-type"] == "application/problem+json"


def test_a_name_that_no_database_holds_is_wrong_like_any_other() -> None:
    shown = base64.b64encode(b"a\0b:x").decode()
    assert APIClient().get(ME, HTTP_AUTHORIZATION=f"Basic {shown}").status_code == 401


def test_somebody_changes_their_own_password_with_the_one_they_have(ada) -> None:
    here, elsewhere = APIClient(), APIClient()
    for signed_in in (here, elsewhere):
        signed_in.login(username="ada", password=PASSWORD)
    asked = {"current": PASSWORD, "password": "another horse battery"}
    for wrong in ({"current": "wrong"}, {"password": "1234"}):
        answer = here.put(f"{ME}/password", {**asked, **wrong})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert here.put(f"{ME}/password", asked).status_code == 204
    assert (here.get(ME).status_code, elsewhere.get(ME).status_code) == (200, 401)
    assert AuditEntry.objects.get(action="set_password").actor_name == "ada"


def test_whoever_has_a_session_guesses_no_password_by_it(ada) -> None:
    client = APIClient()
    client.login(username="ada", password=PASSWORD)
    for _ in range(3):
        client.put(f"{ME}/password", {"current": "wrong", "password": "another horse battery"})
    answer = client.put(f"{ME}/password", {"current": PASSWORD, "password": "another horse battery"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_a_token_changes_no_password(ada) -> None:
    _, secret = token_of(ada, ["users:write"])
    answer = bearer(secret).put(f"{ME}/password", {"current": PASSWORD, "password": "another horse battery"})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


def test_a_lock_is_of_a_name_at_an_address(ada) -> None:
    lock_out()
    assert basic(PASSWORD).status_code == 429
    assert basic(PASSWORD, "10.0.0.2").status_code == 200
    assert locked_until("bob", "10.0.0.1") is None
    assert locked_until("ADA", "10.0.0.1") is not None, "whatever its case"


def test_names_that_nobody_has_are_locked_all_the_same() -> None:
    lock_out("nobody")
    assert locked_until("nobody", "10.0.0.1") is not None


def test_the_right_password_begins_the_count_anew(ada) -> None:
    for _ in range(2):
        basic("wrong")
    assert basic(PASSWORD).status_code == 200
    assert not SignInFailures.objects.exists()


def test_a_lock_ends(ada) -> None:
    lock_out()
    SignInFailures.objects.update(locked_until=timezone.now())
    assert basic(PASSWORD).status_code == 200


def test_failures_far_apart_are_no_attack() -> None:
    for _ in range(6):
        record_failure("ada", None)
        SignInFailures.objects.update(last_at=timezone.now() - timedelta(minutes=11))
    assert locked_until("ada", None) is None


def test_what_strangers_leave_behind_is_removed() -> None:
    record_failure("ada", "10.0.0.1")
    SignInFailures.objects.update(last_at=timezone.now() - timedelta(days=2))
    record_failure("bob", "10.0.0.1")
    assert [row.name for row in SignInFailures.objects.all()] == ["bob"]


def test_a_token_is_never_locked_out(ada) -> None:
    _, secret = token_of(ada, ["queues:read"])
    lock_out(address="127.0.0.1")
    assert basic(PASSWORD, "127.0.0.1").status_code == 429
    assert bearer(secret).get(ME).status_code == 200


def test_a_session_gets_another_key_at_sign_in(client, ada) -> None:
    client.get(reverse("login"))
    session = client.session
    session["planted"] = True
    session.save()
    before = session.session_key
    client.cookies["switchyard_session"] = before
    form(client, PASSWORD)
    assert client.session.session_key != before
    assert not Session.objects.filter(session_key=before).exists()


def test_a_session_ends_when_it_is_not_used(client, ada, settings) -> None:
    form(client, PASSWORD)
    ends = Session.objects.get().expire_date - timezone.now()
    assert ends <= timedelta(seconds=settings.SESSION_COOKIE_AGE)
    Session.objects.update(expire_date=timezone.now())
    assert client.get(reverse("overview")).headers["Location"] == "/login/?next=/"


@pytest.mark.parametrize(("headers", "is_kept"), [({}, True), ({"HX-Request": "true"}, False)])
def test_who_does_something_keeps_their_session_and_a_page_by_itself_does_not(client, ada, headers, is_kept) -> None:
    form(client, PASSWORD)
    session = client.session
    session["seen"] -= 61
    session.save()
    before = timezone.now() + timedelta(seconds=30)
    Session.objects.update(expire_date=before)
    assert client.get(reverse("overview"), headers=headers).status_code == 200
    assert (Session.objects.get().expire_date > before) is is_kept


def test_a_session_is_written_once_a_minute_at_most(client, ada) -> None:
    form(client, PASSWORD)
    before = Session.objects.get().expire_date
    client.get(reverse("overview"))
    assert Session.objects.get().expire_date == before
