"""The status of a partition, and the sentence that explains it."""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from queueapi.choices import LagStatus
from tests.unit.spark.traces import every, point, worked
from workers.spark.transforms.options import LagOptions
from workers.spark.transforms.points import Point, Work
from workers.spark.transforms.status import Verdict, judge

OPTIONS = LagOptions()


def verdict(points: Sequence[Point], work: Sequence[Work] = (), options: LagOptions = OPTIONS) -> Verdict:
    return judge(points, points[-1].at_s, options, work)


def status(points: Sequence[Point], work: Sequence[Work] = (), options: LagOptions = OPTIONS) -> LagStatus:
    found, reason = verdict(points, work, options)
    assert reason.startswith(f"{found.label}: ")
    assert len(reason) <= 300, "what the table holds"
    return found


def over_time(points: Sequence[Point]) -> Iterator[LagStatus]:
    """As each sample came, within the window."""
    for last in range(1, len(points) + 1):
        known = [one for one in points[:last] if one.at_s >= points[last - 1].at_s - OPTIONS.window_s]
        yield status(known)


def stopped(seconds: int, lag: int = 12_400) -> list[Point]:
    """It committed every 5 s, and then no more for so long."""
    before = [(10 * index + 5, 10 * index) for index in range(20)]
    return every(5, [*before, *[(190 + lag, 190)] * (seconds // 5)])


class TestStop:
    def test_explains_itself(self) -> None:
        assert verdict(stopped(240)) == (
            LagStatus.STOP,
            "STOP: no commit for 4 min; commits came every 5 s; 12,400 waiting",
        )

    def test_not_within_a_minute(self) -> None:
        assert status(stopped(60)) == LagStatus.OK

    def test_the_lag_is_of_now_though_commits_stopped(self) -> None:
        points = [*stopped(240), point(340, 90_190, 190)]
        assert verdict(points).reason.endswith("90,000 waiting")

    def test_who_commits_seldom_is_given_longer(self) -> None:
        """Every 50 s, and then nothing for three minutes; for four."""
        seldom = [(10 * index + 5, 100 * (index // 10)) for index in range(50)]
        assert status(every(5, [*seldom, *[(2100, 400)] * 30])) != LagStatus.STOP
        assert verdict(every(5, [*seldom, *[(2100, 400)] * 50])).reason == (
            "STOP: no commit for 4 min; commits came every 50 s; 1,700 waiting"
        )

    def test_longer_than_the_window(self) -> None:
        assert verdict(every(5, [(500, 100)] * 121)).reason == "STOP: no commit for 10 min or longer; 400 waiting"

    def test_nothing_was_ever_committed(self) -> None:
        assert verdict(every(5, [(170, None)] * 26)) == (
            LagStatus.STOP,
            "STOP: nothing is committed; 170 waiting for 2 min or longer",
        )

    def test_who_had_nothing_to_commit_has_not_stopped(self) -> None:
        """A low-traffic topic: idle for nine minutes, then a message comes."""
        idle = every(5, [(100, 100)] * 110)
        assert status([*idle, *every(5, [(102, 100)] * 5, start_s=550)]) == LagStatus.OK

    def test_but_has_once_that_message_waits_for_long(self) -> None:
        idle = every(5, [(100, 100)] * 60)
        points = [*idle, *every(5, [(102, 100)] * 30, start_s=300)]
        assert verdict(points).reason == "STOP: no commit for 2 min; 2 waiting"

    def test_low_traffic_does_not_make_us_patient(self) -> None:
        """A message every two minutes, handled at once; then one that is not."""
        calm: list[tuple[int, int]] = []
        for number in range(3):
            calm += [(2 * number + 2, 2 * number)] + [(2 * number + 2, 2 * number + 2)] * 23
        assert status(every(5, [*calm, *[(8, 6)] * 16])) == LagStatus.STOP

    def test_one_message_may_be_a_marker(self) -> None:
        assert status(every(5, [(101, 100)] * 120)) == LagStatus.OK

    def test_but_not_where_nothing_was_committed(self) -> None:
        assert status(every(5, [(1, None)] * 120)) == LagStatus.STOP

    def test_what_may_always_wait(self) -> None:
        options = LagOptions(allowed_lag=400)
        assert verdict(every(5, [(500, 100)] * 121), options=options) == (LagStatus.OK, "OK: 400 waiting, as may be")


class TestStall:
    def test_tries_in_vain(self) -> None:
        points = stopped(240)
        work = [worked(at, attempts=10, failures=9) for at in range(100, 336, 10)]
        assert verdict(points, work) == (
            LagStatus.STALL,
            "STALL: at work, and no further for 4 min; 54 of the last 60 attempts failed; 12,400 waiting",
        )

    def test_commits_the_same_again(self) -> None:
        work = [worked(at, commits=1) for at in range(100, 336, 10)]
        assert verdict(stopped(240), work).reason == (
            "STALL: at work, and no further for 4 min; it commits the same again; 12,400 waiting"
        )

    def test_one_message_that_keeps_failing(self) -> None:
        work = [worked(at, attempts=1, failures=1) for at in range(0, 600, 10)]
        assert status(every(5, [(101, 100)] * 120), work) == LagStatus.STALL

    def test_who_has_ceased_to_try_has_stopped(self) -> None:
        work = [worked(at, attempts=10, failures=10) for at in range(100, 200, 10)]
        assert status(stopped(240), work) == LagStatus.STOP

    def test_an_idle_report_is_no_work(self) -> None:
        assert status(stopped(240), [worked(at) for at in range(100, 336, 10)]) == LagStatus.STOP


class TestRewind:
    def test_explains_itself(self) -> None:
        points = every(5, [(1000, 900 + index) for index in range(20)] + [(1000, 200 + index) for index in range(25)])
        assert verdict(points) == (
            LagStatus.REWIND,
            "REWIND: went back from 919 to 200 2 min ago, now at 224; 776 waiting",
        )

    def test_until_it_is_where_it_was(self) -> None:
        back = every(30, [(1000, 500), (1000, 200), (1000, 400)])
        assert status(back) == LagStatus.REWIND
        assert status([*back, point(90, 1000, 500)]) == LagStatus.OK

    def test_its_offsets_are_gone(self) -> None:
        assert verdict(every(30, [(1000, 500), (1000, None)])).reason == (
            "REWIND: the committed offset, 500, is gone since 0 s; 1,000 waiting"
        )

    def test_who_went_back_and_stopped_has_stopped(self) -> None:
        points = every(5, [(1000, 500)] * 5 + [(1000, 200)] * 60)
        assert status(points) == LagStatus.STOP

    def test_forward_is_well(self) -> None:
        assert status(every(5, [(1000, 100)] * 5 + [(1000, 1000)])) == LagStatus.OK


class TestWarn:
    def test_falls_behind(self) -> None:
        points = every(5, [(1000 * index, 500 * index) for index in range(121)])
        assert verdict(points) == (
            LagStatus.WARN,
            "WARN: falls behind; 60,000 waiting, 5 min behind; 200/s come, 100/s go",
        )

    def test_does_not_catch_up(self) -> None:
        points = every(5, [(200_000 + 500 * index, 500 * index) for index in range(121)])
        assert verdict(points).reason == (
            "WARN: does not catch up; 200,000 waiting, 33 min behind; 100/s come, 100/s go"
        )

    def test_a_dip_of_one_changes_nothing(self) -> None:
        points = every(5, [(200_000 + 500 * index, 500 * index + index % 2) for index in range(121)])
        assert status(points) == LagStatus.WARN

    def test_catching_up(self) -> None:
        points = every(5, [(10_000 + 50 * index, 100 * index) for index in range(121)])
        assert verdict(points) == (
            LagStatus.OK,
            "OK: catching up; 4,000 waiting, 6 min behind",
        )

    def test_so_slowly_that_it_is_none(self) -> None:
        """2 an hour, of 200 000."""
        points = every(5, [(200_000 + 500 * index, 500 * index + index // 60) for index in range(121)])
        assert status(points) == LagStatus.WARN

    def test_commits_in_steps_hide_nothing(self) -> None:
        """20/s come, 10/s go, committed every 25 s."""
        points = every(5, [(10_000 + 100 * index, 250 * (index // 5)) for index in range(121)])
        assert set(over_time(points[30:])) - {LagStatus.OK} == {LagStatus.WARN}
        assert status(points) == LagStatus.WARN

    def test_a_few_seconds_behind_is_nothing(self) -> None:
        """Always 300 behind, at 100/s: three seconds."""
        points = every(5, [(300 + 500 * index, 500 * index) for index in range(121)])
        assert verdict(points) == (LagStatus.OK, "OK: 300 waiting, 3 s behind")

    def test_who_caught_up_lately_does_not_fall_behind(self) -> None:
        caught_up = [(1000 * index, 1000 * index) for index in range(100)]
        since = [(99_000 + 1000 * index, 99_000 + 100 * index) for index in range(20)]
        assert status(every(5, [*caught_up, *since])) == LagStatus.OK


class TestOk:
    def test_nothing_waits(self) -> None:
        assert verdict([point(0, 100, 100)]) == (LagStatus.OK, "OK: nothing waits")

    def test_one_sample(self) -> None:
        assert verdict([point(0, 100, 40)]) == (LagStatus.OK, "OK: 60 waiting; too little is known yet to say more")

    def test_a_topic_made_anew_under_an_old_commit(self) -> None:
        assert verdict([point(0, 20, 500)]).reason.startswith("OK: nothing waits; the commit is 480 beyond the end")


class TestNoFlapping:
    """However a trace wobbles, its status does not."""

    @staticmethod
    def changes(points: Sequence[Point]) -> list[LagStatus]:
        found = list(over_time(points))
        return [after for before, after in pairwise(found) if after != before]

    @pytest.mark.parametrize("seed", range(5))
    def test_falling_behind_in_fits_and_starts(self, seed: int) -> None:
        rng = random.Random(seed)
        end, committed, standings = 50_000, 0, []
        for _ in range(240):
            end += rng.randint(300, 700)
            committed += rng.choice([0, 0, 400, 800, 1000])
            standings.append((end, committed))
        assert self.changes(every(5, standings)) in ([LagStatus.WARN], [])

    @pytest.mark.parametrize("seed", range(5))
    def test_well_under_a_wobbling_load(self, seed: int) -> None:
        rng = random.Random(seed)
        end, committed, standings = 0, 0, []
        for _ in range(240):
            end += rng.choice([0, 10, 500, 2_000])
            committed = max(committed, end - rng.randint(0, 1_500))
            standings.append((end, committed))
        assert self.changes(every(5, standings)) == []

    @pytest.mark.parametrize("gap", [5, 20, 45, 70, 100])
    def test_commits_that_come_seldom_but_come(self, gap: int) -> None:
        end_of = [(10 * second, 10 * (second - second % gap)) for second in range(0, 1200, 5)]
        assert LagStatus.STOP not in self.changes(every(5, end_of))

    def test_stopped_for_good(self) -> None:
        assert self.changes(stopped(1500)) == [LagStatus.STOP]
