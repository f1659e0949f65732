"""Outcomes as a table for people and as JSON for machines."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.measuring import Benchmark, Comparison, Sample

_HEADINGS = (
    "benchmark",
    "value",
    "spread",
    "unit",
    "goal",
    "of goal",
    "peer",
    "peer value",
    "spread",
    "ratio",
    "wanted",
)


def as_row(comparison: Comparison) -> dict[str, Any]:
    """One entry of the JSON file. What could not be measured is null; above 1, `ratio` is in our favour."""
    return {
        "name": comparison.benchmark.subject.name,
        "value": comparison.sample.median,
        "unit": comparison.benchmark.unit,
        "goal": comparison.benchmark.goal,
        "peer": comparison.peer.name,
        "peer_value": comparison.peer_sample.median,
        "ratio": comparison.ratio,
    }


def write_json(path: Path, comparisons: Iterable[Comparison]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([as_row(comparison) for comparison in comparisons], indent=2) + "\n")


def line(comparisons: Sequence[Comparison]) -> str:
    """What one benchmark gave, beside its peers: for who waits for the others."""
    [benchmark] = {comparison.benchmark for comparison in comparisons}
    ours = f"{benchmark.subject.name}: {_number(comparisons[0].sample.median)} {benchmark.unit} ({_goal(benchmark)})"
    return "; ".join([ours, *(f"{one.peer.name} {_number(one.peer_sample.median)}" for one in comparisons)])


def table(comparisons: Sequence[Comparison]) -> str:
    """Aligned columns, and below them what was measured less often, or not at all and why."""
    rows = [_HEADINGS, *(_cells(comparison) for comparison in comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join((lines[0], "-" * len(lines[0]), *lines[1:], *_notes(comparisons)))


def _cells(comparison: Comparison) -> tuple[str, ...]:
    benchmark, sample, peer = comparison.benchmark, comparison.sample, comparison.peer_sample
    return (
        benchmark.subject.name,
        _number(sample.median),
        _percent(sample.spread),
        benchmark.unit,
        _goal(benchmark),
        _percent(_share_of_goal(comparison)),
        comparison.peer.name,
        _number(peer.median),
        _percent(peer.spread),
        "-" if comparison.ratio is None else f"{comparison.ratio:.3g}",
        "-" if comparison.peer.least_ratio is None else f"≥ {comparison.peer.least_ratio:.3g}",
    )


def _goal(benchmark: Benchmark) -> str:
    if benchmark.goal is None:
        return "-"
    return ("≥ " if benchmark.better == "higher" else "≤ ") + _number(benchmark.goal)


def _share_of_goal(comparison: Comparison) -> float | None:
    """1 or more: reached."""
    value, goal = comparison.sample.median, comparison.benchmark.goal
    if not value or goal is None:
        return None
    return value / goal if comparison.benchmark.better == "higher" else goal / value


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    parties: list[tuple[str, Sample]] = []
    for comparison in comparisons:
        parties += [
            (comparison.benchmark.subject.name, comparison.sample),
            (comparison.peer.name, comparison.peer_sample),
        ]
    reasons = {name: sample.unavailable for name, sample in parties if sample.unavailable}
    unavailable = [f"{name}: not available: {reason}" for name, reason in reasons.items()]
    return [*_fewer_rounds(comparisons), *unavailable]


def _fewer_rounds(comparisons: Sequence[Comparison]) -> list[str]:
    limited = {one.benchmark.subject.name: one for one in comparisons if one.benchmark.most_rounds is not None}
    return [f"{name}: in {len(one.sample.values)} rounds" for name, one in limited.items()]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
