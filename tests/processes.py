"""Processes of a test's own: forked ones that can be heard and killed, and ones with mounts of their own."""

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self

import pytest

from queuecore.testing.waiting import DEADLINE_S

P = ParamSpec("P")


class Child:
    """A process that does one thing. What it sends is heard here; what it raises is raised here.

    It is forked, so it has to open itself what it uses, and no provider may be open here when it begins: SQLite would
    take the parent's locks for the child's.
    """

    def __init__(self, work: Callable[Concatenate[Connection, P], None], *args: P.args, **kwargs: P.kwargs) -> None:
        fork = get_context("fork")
        self._ours, theirs = fork.Pipe()
        self.process = fork.Process(target=_work, args=(work, self._ours, theirs, args, kwargs), daemon=True)
        self.process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def hear(self) -> Any:
        """What it sends next. EOFError when it is over."""
        assert self._ours.poll(DEADLINE_S), "the child is silent"
        said = self._ours.recv()
        if isinstance(said, _Failure):
            raise AssertionError(f"the child failed:\n{said.trace}")
        return said

    def hear_all(self) -> list[Any]:
        """Everything it still says until it is over."""
        heard = []
        while True:
            try:
                heard.append(self.hear())
            except (EOFError, ConnectionResetError):
                return heard

    def say(self, what: object = None) -> None:
        self._ours.send(what)

    def join(self) -> int | None:
        """Wait until it is over; its exit code."""
        self.process.join(DEADLINE_S)
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.process.join(DEADLINE_S)

    def close(self) -> None:
        self._ours.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.close()


class _Failure:
    def __init__(self, trace: str) -> None:
        self.trace = trace


def _work(work: Callable[..., None], parents: Connection, ours: Connection, args: Any, kwargs: Any) -> None:
    parents.close()
    try:
        work(ours, *args, **kwargs)
    except BaseException:
        ours.send(_Failure(traceback.format_exc()))
        os._exit(1)


def run_with_mounts(mounts: str, work: Callable[..., None], *args: object) -> str:
    """What the function printed, in a process whose mounts are its own: made by these shell commands, with the
    function's arguments as $1, $2, … Skips where the kernel does not let us."""
    if (problem := _no_mounts()) is not None:
        pytest.skip(f"needs a user namespace with mounts of its own: {problem}")
    call = f"import sys; from {work.__module__} import {work.__name__}; {work.__name__}(*sys.argv[1:])"
    script = f'set -e; {mounts}; exec "$0" -c "{call}" "$@"'
    return _run([*_OWN_MOUNTS, "sh", "-c", script, sys.executable, *map(str, args)])


def run_alone(work: Callable[..., None], *args: object) -> str:
    """What the function printed, in a process that was not forked from this one."""
    call = f"import sys; from {work.__module__} import {work.__name__}; {work.__name__}(*sys.argv[1:])"
    return _run([sys.executable, "-c", call, *map(str, args)])


_ROOT = Path(__file__).parents[1]
_OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")


def _run(command: list[str]) -> str:
    done = subprocess.run(command, cwd=_ROOT, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@lru_cache
def _no_mounts() -> str | None:
    """Why there cannot be any, or None."""
    try:
        done = subprocess.run(
            [*_OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/tmp"],  # noqa: S108 gone with the process
            check=False, capture_output=True, text=True, timeout=DEADLINE_S,
        )  # fmt: skip
    except FileNotFoundError:
        return "there is no `unshare`"
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else None
