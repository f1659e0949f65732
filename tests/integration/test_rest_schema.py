"""What the OpenAPI document says of each operation: what it is for, what is sent and answered, and how it refuses."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from queueapi.rest.v1.tags import TAGS
from tests.rest_kit import TABLE, operations

PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def shapes() -> dict[str, Any]:
    return _with_null(SchemaGenerator().get_schema(request=None, public=True)["components"])


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    return operations()


def _with_null(shape: Any) -> Any:
    """As JSON Schema says it, which does not know OpenAPI's `nullable`."""
    if isinstance(shape, list):
        return [_with_null(part) for part in shape]
    if not isinstance(shape, dict):
        return shape
    plain = {name: _with_null(part) for name, part in shape.items() if name not in ("nullable", "example", "examples")}
    return {"anyOf": [plain, {"type": "null"}]} if shape.get("nullable") is True else plain


def _contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Whatever is sent or answered, and where."""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"the body, {kind}", content
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items():
            yield f"{status}, {kind}", content


def _examples(content: dict[str, Any]) -> list[Any]:
    named = [each["value"] for each in content.get("examples", {}).values()]
    return [*named, content["example"]] if "example" in content else named


def test_the_page_that_shows_it_asks_no_other_host(admin_api) -> None:
    page = admin_api.get("/api/v1/docs", headers={"Accept": "text/html"})
    assert "default-src 'self'; " in page["Content-Security-Policy"]
    assert "style-src 'self' 'unsafe-inline'; " in page["Content-Security-Policy"]
    script = admin_api.get("/api/v1/docs?script=", headers={"Accept": "text/html"}).content.decode()
    assert '"/api/v1/schema"' in script
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page.content.decode())
    assert {address[:8] for address in addresses} == {"/static/", "/api/v1/"}
    for address in addresses:
        assert not address.startswith("/static/") or finders.find(address.removeprefix("/static/")), address
    document = admin_api.get("/api/v1/schema", headers={"Accept": "application/json,*/*"})
    assert document.json()["openapi"].startswith("3.")


def test_it_is_of_a_group_that_says_what_it_is(told) -> None:
    described = [tag["name"] for tag in TAGS]
    assert described == sorted({tag for operation in told.values() for tag in operation["tags"]})
    assert all(len(tag["description"]) <= 80 for tag in TAGS)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_it_has_a_summary(told, name) -> None:
    summary = told[name].get("summary") or ""
    assert summary, f"{name}: say in `summary` of extend_schema, or in the view's `summaries`, what it is for"
    assert len(summary) <= 80, f"{name}: {summary!r} is no summary"
    assert summary[0].isupper(), summary
    assert summary[-1].isalnum(), summary


def test_no_two_operations_have_the_same_summary(told) -> None:
    summaries = [operation["summary"] for operation in told.values()]
    assert sorted(summaries) == sorted(set(summaries))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_all_that_is_sent_or_answered_has_an_example_of_its_shape(told, shapes, name) -> None:
    for where, content in _contents(told[name]):
        found = _examples(content)
        assert found, f"{name}: {where} has no example; see queueapi/rest/v1/examples.py"
        wanted = {**_with_null(content["schema"]), "components": shapes}
        for example in found:
            wrong = [
                f"{error.json_path}: {error.message}" for error in Draft202012Validator(wanted).iter_errors(example)
            ]
            assert not wrong, f"{name}: the example of {where} is not of its shape: {wrong}"


@pytest.mark.parametrize("name", sorted(TABLE))
def test_it_tells_how_it_refuses(told, name) -> None:
    refusals = {"400", "401", "403", "406", "429", "500"}
    refusals |= {"404"} if "{" in name or TABLE[name].is_list else set()
    refusals |= set() if name.startswith("GET") else {"409", "413", "415", "422"}
    missing = refusals - told[name]["responses"].keys()
    assert not missing, f"{name} does not tell of {missing}"
    for status, answer in told[name]["responses"].items():
        if int(status) >= 400:
            assert answer["description"], f"{name}: {status}"
            [problem] = _examples(answer["content"][PROBLEM])
            assert problem["status"] == int(status)
            assert problem["code"], f"{name}: {status}"
