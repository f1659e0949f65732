"""The REST benchmarks: all lists of a round are looked at together, whatever is told of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.benchmarks import rest_lists
from tests.benchmarks.rest_lists import Looked, Rounds


def test_a_round_looks_once_however_much_is_told_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    looks = iter(range(1, 3))

    def look(_: object) -> list[SimpleNamespace]:
        number = next(looks)
        return [SimpleNamespace(result={"GET /a": Looked(number, 1), "GET /b": Looked(number * 10, 2)})]

    monkeypatch.setattr(rest_lists, "installation", lambda folder, _: folder)
    monkeypatch.setattr(rest_lists, "run_together", look)
    rounds = Rounds(tmp_path, 1, {"GET /a": [], "GET /b": []})
    assert [rounds.p95_ms("GET /a", tmp_path) for _ in range(2)] == [1, 2]
    assert [rounds.p95_ms("GET /b", tmp_path) for _ in range(2)] == [10, 20]
    assert [rounds.queries("GET /b", tmp_path) for _ in range(2)] == [2, 2]
    assert next(looks, None) is None
