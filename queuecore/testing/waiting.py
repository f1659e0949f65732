"""Waiting for something to become true, never for time to pass."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

# Generous on purpose: it is only ever used up by a test that fails.
DEADLINE_S = 60.0
_LOOK_AGAIN_S = 0.01


def wait_until(condition: Callable[[], Found], timeout: float = DEADLINE_S) -> Found:
    """The condition's first true value. AssertionError when there was none within the seconds given."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        if time.monotonic() > deadline:
            name = getattr(condition, "__qualname__", repr(condition))
            raise AssertionError(f"still not true after {timeout:g} s: {name}")
        time.sleep(_LOOK_AGAIN_S)
    return found
