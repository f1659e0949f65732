"""The benchmark of the console looks at every page there is, as whom it is for, and at what else is asked of them."""

from pathlib import Path

import pytest

from console.own_pages import OWN
from tests.benchmarks.groups.console import Rounds
from tests.benchmarks.rest_rows import SMALL
from tests.console_pages import NO_PAGES


@pytest.mark.full
def test_a_small_installation_has_all_that_is_looked_at(tmp_path: Path) -> None:
    """What answers otherwise than with a page is an error there, and so is a plan that does something."""
    looked = Rounds(tmp_path, SMALL).names()
    shown = {name for name in looked if not name.endswith((" of a tenant administrator", " of a tenant viewer"))}
    assert {"queue_messages", "queue_groups", "reset_offsets", "replay_letters: all letters"} <= shown
    assert {"queues in any order", "search: a common word", "overview on call", "first load"} <= shown
    own = {name.removesuffix(" of a tenant administrator") for name in set(looked) - shown}
    assert {
        "overview",
        "queue",
        "dead_letters",
        "operation",
        "alert",
        "isolation_request",
    } <= own & OWN.keys() - NO_PAGES
