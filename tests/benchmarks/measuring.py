"""Running a subject and its peers so that they can be compared.

One number measured once says little on a shared machine. All parties of a benchmark are measured in every round,
one after the other, and every second round goes backwards: a machine that slows down during the run then slows
all of them alike. What is reported is the median of the rounds, with the spread beside it.
"""

import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


class NotAvailable(Exception):
    """Raised by a measurement whose subject cannot be had on this machine; says why."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Something that can be measured. `measure` runs it once in an empty folder of its own, which is removed
    afterwards, and gives the value."""

    name: str
    measure: Callable[[Path], float]


@dataclass(frozen=True, slots=True)
class Peer(Measurement):
    """What a subject is compared with, and how many times as good as this it should be; None where the peer is there
    to show what is possible at all."""

    least_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A measurement of ours, and the peers it is compared with, all in the same unit. The goal is None where only the
    comparison counts. What takes minutes is measured in `most_rounds` at most, and the table says so."""

    subject: Measurement
    peers: tuple[Peer, ...]
    unit: str
    goal: float | None = None
    better: Literal["higher", "lower"] = "higher"
    most_rounds: int | None = None

    def __post_init__(self) -> None:
        if not self.peers:
            raise ValueError(f"{self.subject.name!r} needs a peer to be compared with")
        if len({party.name for party in self.parties}) != len(self.parties):
            raise ValueError(f"{self.subject.name!r}: subject and peers need names of their own")

    @property
    def parties(self) -> tuple[Measurement, ...]:
        return (self.subject, *self.peers)


@dataclass(slots=True)
class Sample:
    """What the rounds gave for one party: values, or the reason why there are none."""

    values: list[float] = field(default_factory=list)
    unavailable: str = ""

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values and not self.unavailable else None

    @property
    def spread(self) -> float | None:
        """Largest less smallest value, as a share of the median."""
        return (max(self.values) - min(self.values)) / self.median if self.median else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A benchmark's outcome beside one of its peers."""

    benchmark: Benchmark
    peer: Peer
    sample: Sample
    peer_sample: Sample

    @property
    def ratio(self) -> float | None:
        """How many times as good as the peer: above 1 the subject is better, whichever direction is better."""
        value, peer_value = self.sample.median, self.peer_sample.median
        if not value or not peer_value:
            return None
        return value / peer_value if self.benchmark.better == "higher" else peer_value / value


def run_benchmark(benchmark: Benchmark, rounds: int, folder: Path) -> list[Comparison]:
    """Measure all parties `rounds` times, or as often as they may be, interleaved; one comparison per peer."""
    samples = {party.name: Sample() for party in benchmark.parties}
    for number, party in _turns(benchmark.parties, min(rounds, benchmark.most_rounds or rounds)):
        sample = samples[party.name]
        if not sample.unavailable:
            _measure(party, sample, folder / f"{number}-{_file_name(party.name)}")
    subject = samples[benchmark.subject.name]
    return [Comparison(benchmark, peer, subject, samples[peer.name]) for peer in benchmark.peers]


def _turns(parties: Sequence[Measurement], rounds: int) -> Iterator[tuple[int, Measurement]]:
    for number in range(rounds):
        for party in parties if number % 2 == 0 else reversed(parties):
            yield number, party


def _measure(party: Measurement, sample: Sample, folder: Path) -> None:
    folder.mkdir(parents=True)
    try:
        sample.values.append(party.measure(folder))
    except NotAvailable as reason:
        sample.unavailable = str(reason)
    finally:
        shutil.rmtree(folder)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
