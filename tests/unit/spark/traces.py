"""What a partition was like over time, in a line: for the tests of what is made of it."""

from collections.abc import Iterable

from workers.spark.transforms.points import Point, Work


def point(at_s: float, end: int, committed: int | None = None, **changes: object) -> Point:
    fields: dict[str, object] = {"service": "sampler", "topic": "t.0", "group": "g", "beginning": 0}
    return Point(at_s=at_s, end=end, committed=committed, **(fields | changes))  # type: ignore[arg-type]


def every(seconds: float, standings: Iterable[tuple[int, int | None]], start_s: float = 0.0) -> list[Point]:
    """A sample of (end, committed) after each so many seconds."""
    return [point(start_s + seconds * index, *standing) for index, standing in enumerate(standings)]


def worked(at_s: float, commits: int = 0, attempts: int = 0, failures: int = 0) -> Work:
    return Work(at_s, commits, attempts, failures)
