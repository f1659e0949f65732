"""The documentation of the REST interface says how to come in, and how one is refused."""

import pytest
from drf_spectacular.generators import SchemaGenerator

pytestmark = pytest.mark.django_db

NEW = ("audit", "me", "tokens", "users")


@pytest.fixture(scope="module")
def schema() -> dict:
    return SchemaGenerator().get_schema(public=True)


def test_it_names_the_ways_in(schema) -> None:
    schemes = schema["components"]["securitySchemes"]
    assert (schemes["token"]["scheme"], schemes["password"]["scheme"]) == ("bearer", "basic")
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            assert {"token": []} in operation["security"], f"{method} {path}"


def test_every_operation_tells_how_it_refuses(schema) -> None:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            wanted = {"401", "403", "429", *(["404"] if "{" in path else [])}
            assert wanted <= operation["responses"].keys(), f"{method} {path}"
            assert "application/problem+json" in operation["responses"]["403"]["content"]


def test_what_changes_access_has_a_summary(schema) -> None:
    for path, operations in schema["paths"].items():
        if path.split("/")[3] in NEW:
            for method in operations.keys() - {"get"}:
                assert operations[method]["summary"], f"{method} {path}"
