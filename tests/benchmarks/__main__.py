"""`python -m tests.benchmarks [GROUP]`: measure one group, or all of them.

Tells on standard error what each benchmark gave when it is over; then prints a table and writes
`var/bench/GROUP.json`. Exit code 0 when everything was measured, whether or not the goals are reached; 2 for a group
that does not exist or has no benchmarks yet.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.groups import OpenGroup, UnknownGroup, filled_groups, find_group
from tests.benchmarks.measuring import Comparison, run_benchmark
from tests.benchmarks.reporting import line, table, write_json

DEFAULT_ROUNDS = 5


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measure Switchyard and its peers.")
    parser.add_argument("group", nargs="?", help="which group to measure (default: all that have benchmarks)")
    parser.add_argument(
        "--rounds", type=_positive, default=DEFAULT_ROUNDS, help="how often each is measured (default: %(default)s)"
    )
    parser.add_argument("--only", default="", help="measure only those with this in their names, for a quick look")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("var/bench"),
        help="folder for the results and, during the run, for the data; should be on the disk that matters "
        "(default: %(default)s)",
    )
    return parser.parse_args(arguments)


def run_group(open_group: OpenGroup, rounds: int, output: Path, only: str = "") -> list[Comparison]:
    """Every benchmark of the group that has this in its name. Their data are on the same disk as the results, and
    removed afterwards."""
    output.mkdir(parents=True, exist_ok=True)
    comparisons: list[Comparison] = []
    with (
        tempfile.TemporaryDirectory(dir=output, prefix="data-") as scratch,
        open_group(Path(scratch, "services")) as benchmarks,
    ):
        chosen = [one for one in benchmarks if only in one.subject.name]
        for number, benchmark in enumerate(chosen):
            found = run_benchmark(benchmark, rounds, Path(scratch, str(number)))
            print(f"{number + 1} of {len(chosen)}: {line(found)}", file=sys.stderr)
            comparisons += found
    return comparisons


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    names = [options.group] if options.group else filled_groups()
    try:
        groups = {name: find_group(name) for name in names}
    except UnknownGroup as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    for name, open_group in groups.items():
        comparisons = run_group(open_group, options.rounds, options.output, options.only)
        path = options.output / f"{name}.json"
        write_json(path, comparisons)
        print(f"{name}, median of {options.rounds} rounds\n\n{table(comparisons)}\n\nwritten to {path}")
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("a run needs at least one round")
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
