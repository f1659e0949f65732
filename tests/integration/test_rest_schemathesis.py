"""No operation fails, or answers what the schema does not tell of, whatever is sent by whom.

What to send is made up from the schema, right and wrong. An operation that is new needs a line in the table of
`tests/rest_kit.py`, which says what is there to ask it of.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import pytest
import schemathesis
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as trying
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from queueapi import runtime
from queueapi.rest.conventions import rates
from queuecore.providers.memory import MemoryProvider
from tests.integration.conftest import installed
from tests.integration.schema_kit import carry_out, ground, requesters, send, undone
from tests.rest_kit import API, TABLE, Caller, World

# Left out: that what the schema allows is accepted (`positive_data_acceptance`). A schema cannot tell that a handler
# must be one of those that are loaded, or that a queue must be empty; that such requests are refused it tells.
CHECKS: Final = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
BOTH: Final = list(GenerationMode)
# How many of the cases that cover what a schema says, and how many at random.
FEW: Final = (10, 4)
MANY: Final = (10_000, 100)
# Each of its answers is the whole document, made anew: that takes a second.
FEWER: Final = {"GET /schema": (2, 1)}


@pytest.fixture(scope="module")
def schema() -> Any:
    # Credentials are those of who asks.
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    return schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True), config=config)


@pytest.fixture
def world(transactional_db, monkeypatch, tmp_path, settings) -> Iterator[World]:
    """An installation for one operation."""
    monkeypatch.setattr(runtime, "open_provider", lambda _: MemoryProvider())
    monkeypatch.setattr(rates, "counter", rates.RateCounter())
    unlimited = replace(settings.SWITCHYARD.rest, requests_per_minute=10**9, anonymous_requests_per_minute=10**9)
    settings.SWITCHYARD = replace(settings.SWITCHYARD, rest=unlimited)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with installed(tmp_path, settings) as installation:
        yield World(installation)


class Trial:
    """One operation on its world: what is sent to it, and what was wrong with the answers."""

    def __init__(self, schema: Any, name: str, world: World) -> None:
        method, path = name.split()
        self.schema, self.method = schema, method
        self.operation = schema[API + path][method]
        self.caller = Caller(None, name, world)
        self.clients = requesters(world.tenant)
        self.wrong: dict[str, str] = {}

    def run(self, covered: int, guessed: int) -> None:
        self.cover(covered)
        self.guess(guessed)

    def cover(self, most: int) -> None:
        """All that the schema says, one by one: at its limits, beyond them, left out, of another type."""
        cases = self.schema.iter_coverage_cases(
            self.operation, generation_modes=BOTH, generation_config=self.schema.config.generation
        )
        # Other methods are refused everywhere, and the same way.
        own = [case for case in cases if case.method == self.method]
        for case in islice(own, 0, None, -(-len(own) // most)):
            ground(case, self.caller)
            self.ask(case)
            if carry_out(case):
                self.ask(case)

    def guess(self, most: int) -> None:
        """At random, though the same each time; on what is there, and on what is not."""

        @trying(
            max_examples=most,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=st.one_of(*map(self.operation.as_strategy, BOTH)), is_grounded=st.booleans())
        def ask(case: schemathesis.Case, is_grounded: bool) -> None:
            if is_grounded:
                ground(case, self.caller)
            self.ask(case)

        ask()

    def ask(self, case: schemathesis.Case) -> None:
        for who, client in self.clients.items():
            with undone():
                answer = send(case, client)
            try:
                case.validate_response(answer, checks=CHECKS)
            except BaseExceptionGroup as failures:
                for failure in failures.exceptions:
                    self.wrong.setdefault(
                        f"{type(failure).__name__} {failure}"[:160], f"as {who}: {failure}\n{failures}"
                    )


@pytest.mark.parametrize("name", sorted(TABLE))
def test_answers_are_those_of_the_schema(name, schema, world) -> None:
    trial = Trial(schema, name, world)
    trial.run(*FEWER.get(name, FEW))
    assert not trial.wrong, "\n\n".join(trial.wrong.values())


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(TABLE))
def test_answers_are_those_of_the_schema_however_often_it_is_tried(name, schema, world) -> None:
    trial = Trial(schema, name, world)
    trial.run(*FEWER.get(name, MANY))
    assert not trial.wrong, "\n\n".join(trial.wrong.values())
