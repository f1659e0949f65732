"""A request's id, where people look for it."""

import logging

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils.module_loading import import_string
from rest_framework.request import Request

from console.access import actor_of as actor_of_console
from queueapi.actions.actor import Actor
from queueapi.request_ids import answering, current_request_id, usable_request_id
from queueapi.rest.actors import actor_of
from queueapi.rest.middleware import request_id


def line(text: str, **told: object) -> str:
    """As the installation writes it."""
    kind = settings.LOGGING["filters"]["request"]["()"]
    assert settings.LOGGING["handlers"]["stderr"]["filters"] == ["request"]
    record = logging.makeLogRecord({"name": "queueapi", "levelname": "INFO", "msg": text, **told})
    import_string(kind)().filter(record)
    return logging.Formatter(settings.LOGGING["formatters"]["line"]["format"]).format(record)


def test_log_lines_of_a_request_have_its_id_and_others_none() -> None:
    with answering("deploy-4711"):
        assert line("paused").endswith("INFO queueapi [deploy-4711]: paused")
    assert line("paused").endswith("INFO queueapi: paused")


def test_what_django_says_of_a_request_that_is_answered_has_its_id(rf) -> None:
    request = rf.get("/", headers={"X-Request-Id": "deploy-4711"})
    request_id(lambda _: HttpResponse())(request)
    assert line("Not Found", request=request).endswith("INFO queueapi [deploy-4711]: Not Found")


def actor_of_rest(request: HttpRequest) -> Actor:
    asked = Request(request)
    asked.user, asked.auth = request.user, None
    return actor_of(asked)


@pytest.mark.parametrize("actor_of", [actor_of_console, actor_of_rest])
def test_actions_are_told_the_request_they_came_with(actor_of) -> None:
    request = RequestFactory().get("/")
    request.user = User(username="root")
    with answering("deploy-4711"):
        assert actor_of(request).request_id == "deploy-4711"
    assert actor_of(request).request_id is None


def test_a_request_within_a_request_gives_the_id_back() -> None:
    with answering("outer"):
        with answering("inner"):
            assert current_request_id() == "inner"
        assert current_request_id() == "outer"


@pytest.mark.parametrize("given", ["4bf92f3577b34da6a3ce929d0e0e4736", "a", "GET:/x=1+2@host", "x" * 128])
def test_a_sane_id_is_the_clients(given) -> None:
    assert usable_request_id(given) == given


@pytest.mark.parametrize("given", [None, "", "x" * 129, "a\nb", "a b", "ä", "<script>"])
def test_any_other_is_replaced(given) -> None:
    assert usable_request_id(given) not in (given, usable_request_id(given))
