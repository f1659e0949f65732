"""What all tests share."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.services", "tests.databases"]

# How long an example takes says more about the machine than about the code.
settings.register_profile("switchyard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("switchyard")


@pytest.fixture
def collected_after_each() -> Iterator[None]:
    """For tests that ignore the warning about what a library leaves to the garbage collector: else that fails whichever
    test the collector runs in."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def collected_after_all() -> Iterator[None]:
    """The same for what a module's own fixtures hold."""
    yield
    gc.collect()
