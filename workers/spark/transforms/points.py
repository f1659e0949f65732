"""What is known of one partition, in order of time."""

from collections.abc import Iterable
from typing import NamedTuple


class Point(NamedTuple):
    """One sample of a partition, in seconds since 1970: where its log begins and ends, and where the group is."""

    at_s: float
    service: str
    topic: str
    group: str
    beginning: int
    end: int
    committed: int | None

    @property
    def position(self) -> int:
        """A group that never committed has everything before it that is stored."""
        return self.beginning if self.committed is None else self.committed

    @property
    def lag(self) -> int:
        """None where the commit is beyond the end, as after a topic was made anew."""
        return max(0, self.end - (self.beginning if self.committed is None else self.committed))


class Work(NamedTuple):
    """What a consumer said that it did with the partition until then, since it last said so."""

    at_s: float
    commits: int
    attempts: int
    failures: int


def lives(points: Iterable[Point], clock_skew_s: float) -> list[list[Point]]:
    """The points, in order of time, from one making of the topic to the next; the last life is the present one.

    A life ends where the topic or the group is another, and where the end went back: ends only grow. Of several points
    of one moment the last holds. What one service says of another's past, as its clock is behind, is left out.
    """
    found: list[list[Point]] = []
    last: Point | None = None
    for point in points:
        if last is None or _is_another_life(last, point, clock_skew_s):
            found.append([point])
        elif _is_out_of_date(last, point, clock_skew_s):
            continue
        elif point.at_s == last.at_s:
            found[-1][-1] = point
        else:
            found[-1].append(point)
        last = point
    return found


def went_back(before: Point, after: Point) -> bool:
    """Whether the group did, or lost its offset."""
    return before.committed is not None and (after.committed is None or after.committed < before.committed)


def _is_another_life(last: Point, point: Point, clock_skew_s: float) -> bool:
    if (point.topic, point.group) != (last.topic, last.group):
        return True
    return point.end < last.end and not _is_out_of_date(last, point, clock_skew_s)


def _is_out_of_date(last: Point, point: Point, clock_skew_s: float) -> bool:
    """Two services, and the later word has the lower offsets: the clocks differ, as one clock alone never does this."""
    if point.service == last.service or point.at_s - last.at_s > clock_skew_s:
        return False
    return point.end < last.end or went_back(last, point)
