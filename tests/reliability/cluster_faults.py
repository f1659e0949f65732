"""What happens to hosts under test: they stand still, are killed, replaced, stopped and cut off, as a seed says."""

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Final

from queuecore.testing.waiting import wait_until
from tests.reliability.cluster_cuts import Cuts
from tests.reliability.cluster_host import DIED
from tests.reliability.cluster_installation import Installation, Process
from tests.reliability.cluster_journal import What

HOSTS: Final = 3
# A fault lasts until the others have noticed; where they cannot, so many times the lease.
_MOST_LEASES: Final = 4
# Between two faults so much is written down: of a hundred messages or more.
_WORK_BYTES: Final = 120_000
_LOOK_AGAIN_S: Final = 0.02


class Faults:
    """Started hosts are `hosts`, by their ids. For one thread."""

    def __init__(self, installation: Installation, cuts: Cuts, lease_s: float, seed: str) -> None:
        self._installation = installation
        self._cuts = cuts
        self._lease_s = lease_s
        self._chance = random.Random(f"{seed}/faults")
        self._journal = installation.fault_journal()
        self._names = 0
        self.hosts: dict[str, Process] = {}
        self.done: list[str] = []

    def start(self) -> None:
        """All, and wait until they have shared what there is."""
        for _ in range(HOSTS):
            self._start(self._new_name())
        wait_until(lambda: self._installation.database.read().is_settled(set(self.hosts)))

    def run(self, duration_s: float) -> None:
        """One after the other, each as soon as some work was done since the last. All go on in the end."""
        deadline = time.monotonic() + duration_s
        faults = [self._pause, self._pause_in_commit, self._kill, self._stop, self._replace, self._cut]
        while time.monotonic() < deadline:
            # Each kind comes before any comes again.
            self._chance.shuffle(faults)
            for fault in faults:
                if time.monotonic() < deadline:
                    self._do(fault, self._victim())
                    self._let_work()
        self._journal.close()

    def check_in_the_end(self) -> None:
        """As `check`. One that stands still after all goes on."""
        self.check()
        for host in self.hosts.values():
            host.send(signal.SIGCONT)

    def check(self) -> None:
        """AssertionError where a host has ended by itself."""
        for host in self.hosts.values():
            code = host.process.poll()
            assert code is None, f"{host.life} ended with {code}: {host.log.read_text()[-2000:]}"

    def _do(self, fault: Callable[[str], None], victim: str) -> None:
        name, life = fault.__name__.strip("_"), self.hosts[victim].life
        self._journal.note(What.FAULT, who=life, why=name)
        begun_at = time.monotonic()
        fault(victim)
        self._journal.note(What.FAULT, who=life, why=f"{name} is over")
        self.done.append(f"{begun_at:.3f} {name} {life}, for {time.monotonic() - begun_at:.1f} s")
        self.check()

    def _victim(self) -> str:
        """Often the one that coordinates: there is more to go wrong."""
        coordinator = self._installation.database.read().coordinator
        if coordinator in self.hosts and self._chance.random() < 0.4:
            return coordinator
        return self._chance.choice(sorted(self.hosts))

    def _pause(self, victim: str) -> None:
        host = self._joined(victim)
        self._suspend(host)
        if self._chance.random() < 0.3:
            other = self._chance.choice(sorted(self.hosts.keys() - {victim}))
            self._do(self._kill, other)
        self._outlast(host)

    def _pause_in_commit(self, victim: str) -> None:
        """So that it commits as soon as it goes on, and before it can know that it has nothing any more."""
        host = self._joined(victim)
        host.send(signal.SIGUSR1)
        self._within(lambda: _stands_still(host))
        host.send(signal.SIGUSR2)
        self._outlast(host)

    def _outlast(self, host: Process) -> None:
        """Until others have what it had, and have gone on with it."""
        self._within(lambda: self._installation.database.read().is_without(host.name))
        self._let_work()
        self._resume(host)

    def _kill(self, victim: str) -> None:
        host = self.hosts.pop(victim)
        host.process.kill()
        host.process.wait()
        if self._chance.random() < 0.5:
            self._within(lambda: self._installation.database.read().is_dead(victim))
        self._start(victim if self._chance.random() < 0.6 else self._new_name())

    def _stop(self, victim: str) -> None:
        host = self._joined(victim)
        del self.hosts[victim]
        assert host.end() == 0, f"{host.life} did not end well: {host.log.read_text()[-2000:]}"
        self._start(victim)

    def _replace(self, victim: str) -> None:
        """Another is started with its id while it stands still: it has to end by itself when it goes on. Where the
        other has not joined by then, whoever is the first to join has to."""
        host = self._joined(victim)
        self._suspend(host)
        self._start(victim)
        other = self.hosts[victim]
        has_joined = self._within(lambda: self._has_joined(other))
        self._resume(host)
        wait_until(lambda: host.process.poll() is not None or other.process.poll() is not None)
        if not has_joined and other.process.poll() is not None:
            host, other = other, host
            self.hosts[victim] = other
        code = host.process.poll()
        assert code == DIED, f"{host.life} was replaced, and ended with {code}: {host.log.read_text()[-2000:]}"

    def _cut(self, victim: str) -> None:
        self._joined(victim)
        with self._cuts.cut(victim, self._chance) as is_too_long:
            self._within(lambda: is_too_long(self._installation.database.read()))

    def _suspend(self, host: Process) -> None:
        self._journal.note(What.PAUSED, pid=host.pid, who=host.life)
        host.send(signal.SIGSTOP)

    def _resume(self, host: Process) -> None:
        host.send(signal.SIGCONT)
        self._journal.note(What.RESUMED, pid=host.pid, who=host.life)

    def _start(self, name: str) -> None:
        self.hosts[name] = self._installation.start_host(name, self._cuts.url(name))

    def _new_name(self) -> str:
        self._names += 1
        return f"host-{self._names}"

    def _joined(self, name: str) -> Process:
        host = self.hosts[name]
        wait_until(lambda: self._has_joined(host) or host.process.poll() is not None)
        return host

    def _has_joined(self, host: Process) -> bool:
        row = self._installation.database.read().instances.get(host.name)
        return row is not None and row.pid == host.pid and not row.is_gone

    def _let_work(self) -> None:
        before = self._installation.written()
        self._within(lambda: self._installation.written() >= before + _WORK_BYTES)

    def _within(self, condition: Callable[[], bool]) -> bool:
        """Whether it became true in the time that a fault may last."""
        deadline = time.monotonic() + _MOST_LEASES * self._lease_s
        while not (is_true := condition()) and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)
        return is_true


def _stands_still(host: Process) -> bool:
    return os.waitid(os.P_PID, host.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
