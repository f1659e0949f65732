"""The groups of benchmarks: each a module here, `log-growth` in `log_growth`, with a context manager
`benchmarks(folder)`.

It yields the group's benchmarks, with the services they need running under that folder, and stops them afterwards.
"""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.benchmarks.measuring import Benchmark

OpenGroup = Callable[[Path], AbstractContextManager[Sequence[Benchmark]]]

# Every group there will be. One without a module has no measurements yet.
NAMES = (
    *("log", "log-growth", "log-opening", "log-latency", "log-scaling", "routing"),
    *("consuming", "events", "letters", "replay", "kafka", "cluster", "requests", "rest", "pipeline", "console"),
)


class UnknownGroup(Exception):
    """No such group, or one that is still empty; the message lists those there are."""


def filled_groups() -> tuple[str, ...]:
    return tuple(name for name in NAMES if importlib.util.find_spec(_module(name)) is not None)


def find_group(name: str) -> OpenGroup:
    filled = filled_groups()
    if name not in filled:
        problem = f"group {name!r} has no benchmarks yet" if name in NAMES else f"there is no group {name!r}"
        raise UnknownGroup(f"{problem}; those with benchmarks are: {', '.join(filled)}")
    group: OpenGroup = importlib.import_module(_module(name)).benchmarks
    return group


def _module(group: str) -> str:
    return f"{__name__}.{group.replace('-', '_')}"
