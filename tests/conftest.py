"""What all tests share."""

import gc
import itertools
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.services", "tests.databases"]

# How long an example takes says more about the machine than about the code.
settings.register_profile("switchyard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("switchyard")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes that run tests side by side have to find them in one order, whatever order a set of parameters has."""
    runs = itertools.groupby(items, key=lambda item: item.nodeid.partition("[")[0])
    items[:] = [item for _, run in runs for item in sorted(run, key=lambda item: item.nodeid)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What tests log goes from process to process, which not all that we log can: a lone surrogate cannot."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report


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
