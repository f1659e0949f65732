"""The benchmark of lists looks at every list there is, and at rows in each."""

from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.processes import run_together
from tests.benchmarks.rest_lists import looking, naming
from tests.benchmarks.rest_rows import SMALL, installation
from tests.integration.test_rest_lists import FROZEN, MOST_QUERIES


@pytest.mark.full
def test_a_small_installation_has_rows_in_every_list(tmp_path: Path) -> None:
    """Whoever adds a list adds what makes its rows: one without is an error there."""
    data = installation(tmp_path, SMALL)
    [named] = run_together([partial(naming, data)])
    assert sorted(named.result) == sorted(FROZEN)
    [looked] = run_together([partial(looking, data, named.result, times=1)])
    assert {name: found.queries <= MOST_QUERIES for name, found in looked.result.items()} == dict.fromkeys(FROZEN, True)
