"""The parent: starts all children, brings back those that die, stops all on Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Sequence

from django.db import Error as DatabaseError
from django.db import close_old_connections

from queueapi.actions.processes import forget_processes_except, record_process
from queueapi.choices import ProcessState
from queueapi.supervisor.child import Child
from queueapi.supervisor.output import Output
from queuecore.clock import SYSTEM_CLOCK, Clock

LOOK_S = 0.2


class Supervisor:
    def __init__(self, children: Sequence[Child], output: Output, clock: Clock = SYSTEM_CLOCK) -> None:
        self._children = children
        self._output = output
        self._clock = clock
        self._stopping = threading.Event()

    def run(self, is_ready: Callable[[], bool], on_ready: Callable[[], None]) -> None:
        """Keep all children running until SIGINT or SIGTERM; `on_ready` runs once, when `is_ready` first holds."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._stopping.set())
        self._record(lambda: forget_processes_except([child.spec.name for child in self._children]))
        for child in self._children:
            self._start(child)
        announced = False
        while not self._stopping.wait(LOOK_S):
            for child in self._children:
                self._look_after(child)
            if not announced and is_ready():
                announced = True
                on_ready()
        self._stop()

    def _look_after(self, child: Child) -> None:
        if child.has_died():
            self._remember(child, ProcessState.RESTARTING)
        if child.is_due():
            self._start(child)

    def _start(self, child: Child) -> None:
        child.start()
        self._remember(child, ProcessState.RUNNING)

    def _stop(self) -> None:
        """All are told at once, so the slowest decides how long it takes."""
        self._output.say("stopping")
        for child in self._children:
            child.terminate()
        since = self._clock.monotonic()
        for child in self._children:
            child.wait(since)
            self._remember(child, ProcessState.STOPPED)
        self._output.say("stopped")

    def _remember(self, child: Child, state: ProcessState) -> None:
        pid = child.pid if state == ProcessState.RUNNING else None
        name = child.spec.name
        self._record(lambda: record_process(name, state, pid=pid, restarts=child.restarts, last_exit=child.last_exit))

    def _record(self, write: Callable[[], None]) -> None:
        """The console shows what is recorded here; a database that is away must not stop the processes."""
        close_old_connections()
        try:
            write()
        except DatabaseError as error:
            self._output.say(f"could not record the processes' state for the console: {error}")
