"""The benchmark harness, with measurements that only say what they are told to."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from queuecore.providers.kafka.settings import consumer_settings
from queuecore.providers.options import DEFAULT_CONSUMING, DEFAULT_KAFKA
from tests.benchmarks import frameworks, groups
from tests.benchmarks.__main__ import main, run_group
from tests.benchmarks.kafka_broker import BY_DEFAULT
from tests.benchmarks.measuring import Benchmark, Comparison, Measurement, NotAvailable, Peer, Sample, run_benchmark
from tests.benchmarks.peers import bare_kafka
from tests.benchmarks.peers.kafka.work import Task, Work
from tests.benchmarks.processes import run_together, took_s
from tests.benchmarks.reporting import as_row, table, write_json
from tests.benchmarks.workload import BATCH, Tally, batches, messages, number_in, payload, rate_behind_first


def scripted(name: str, values: Sequence[float], calls: list[str] | None = None) -> Peer:
    """A measurement that gives these values in turn, and notes that it was called."""
    remaining = iter(values)

    def measure(folder: Path) -> float:
        assert list(folder.iterdir()) == [], "a measurement starts in an empty folder"
        (folder / "left-behind").touch()
        if calls is not None:
            calls.append(name)
        return next(remaining)

    return Peer(name, measure)


def missing(name: str, calls: list[str]) -> Peer:
    def measure(_folder: Path) -> float:
        calls.append(name)
        raise NotAvailable("no server here")

    return Peer(name, measure)


def comparison(
    value: float | None,
    peer_value: float | None,
    better: str = "higher",
    goal: float | None = 200.0,
    least_ratio: float | None = None,
) -> Comparison:
    peer = Peer("theirs", lambda _folder: 0.0, least_ratio)
    benchmark = Benchmark(scripted("ours", []), (peer,), "messages/s", goal, better)
    samples = [Sample([] if number is None else [number]) for number in (value, peer_value)]
    return Comparison(benchmark, peer, *samples)


def test_subject_and_peers_take_turns_and_every_second_round_goes_backwards(tmp_path: Path) -> None:
    calls: list[str] = []
    subject, first, second = (scripted(name, [1.0] * 3, calls) for name in ("subject", "first", "second"))

    run_benchmark(Benchmark(subject, (first, second), "s", 1.0), rounds=3, folder=tmp_path)

    assert calls == ["subject", "first", "second", "second", "first", "subject", "subject", "first", "second"]


def test_the_median_is_reported_and_the_spread_beside_it(tmp_path: Path) -> None:
    subject = scripted("subject", [10, 1000, 30, 20, 25])
    peer = scripted("peer", [5, 5, 5, 5, 5])

    [outcome] = run_benchmark(Benchmark(subject, (peer,), "messages/s", 50.0), rounds=5, folder=tmp_path)

    assert outcome.sample.median == 25
    assert outcome.sample.spread == pytest.approx((1000 - 10) / 25)
    assert outcome.peer_sample.spread == 0
    assert outcome.ratio == 5


@pytest.mark.parametrize(("better", "ratio"), [("higher", 2.0), ("lower", 0.5)])
def test_a_ratio_above_one_is_always_in_our_favour(better: str, ratio: float) -> None:
    assert comparison(100, 50, better).ratio == ratio


@pytest.mark.parametrize(("value", "peer_value"), [(None, 50), (100, None), (100, 0), (0, 50)])
def test_there_is_no_ratio_where_there_is_nothing_to_compare(value: float | None, peer_value: float | None) -> None:
    assert comparison(value, peer_value).ratio is None


def test_what_takes_minutes_is_measured_less_often_and_the_table_says_so(tmp_path: Path) -> None:
    calls: list[str] = []
    benchmark = Benchmark(scripted("slow", [1] * 5, calls), (scripted("peer", [1] * 5, calls),), "s", most_rounds=2)

    outcomes = run_benchmark(benchmark, rounds=5, folder=tmp_path)

    assert calls == ["slow", "peer", "peer", "slow"]
    assert "slow: in 2 rounds" in table(outcomes)


def test_each_peer_gets_a_row_beside_the_same_subject(tmp_path: Path) -> None:
    subject = scripted("subject", [8])
    peers = (scripted("raw", [16]), scripted("sqlite", [4]))

    outcomes = run_benchmark(Benchmark(subject, peers, "messages/s", 10.0), rounds=1, folder=tmp_path)

    assert [(row.peer.name, row.ratio) for row in outcomes] == [("raw", 0.5), ("sqlite", 2.0)]


def test_a_peer_that_is_not_available_is_asked_once_and_said_so(tmp_path: Path) -> None:
    calls: list[str] = []
    benchmark = Benchmark(scripted("subject", [8, 8]), (missing("redis", calls),), "messages/s", 10.0)

    outcomes = run_benchmark(benchmark, rounds=2, folder=tmp_path)

    assert calls == ["redis"]
    assert as_row(outcomes[0]) | {"peer": "redis", "peer_value": None, "ratio": None} == as_row(outcomes[0])
    assert "redis: not available: no server here" in table(outcomes)


def test_what_a_measurement_leaves_behind_is_removed_before_the_next(tmp_path: Path) -> None:
    benchmark = Benchmark(scripted("subject", [8, 8]), (scripted("peer", [8, 8]),), "messages/s")

    run_benchmark(benchmark, rounds=2, folder=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_any_other_failure_of_a_measurement_ends_the_run(tmp_path: Path) -> None:
    def measure(_folder: Path) -> float:
        raise AssertionError("99 of 100 messages arrived")

    benchmark = Benchmark(Measurement("subject", measure), (scripted("peer", [1]),), "messages/s", 10.0)
    with pytest.raises(AssertionError, match="99 of 100"):
        run_benchmark(benchmark, rounds=1, folder=tmp_path)


def test_a_benchmark_needs_a_peer_with_a_name_of_its_own() -> None:
    with pytest.raises(ValueError, match="needs a peer"):
        Benchmark(scripted("a", []), (), "s", 1.0)
    with pytest.raises(ValueError, match="names of their own"):
        Benchmark(scripted("a", []), (scripted("a", []),), "s", 1.0)


def test_the_json_has_exactly_the_agreed_keys(tmp_path: Path) -> None:
    write_json(tmp_path / "bench" / "log.json", [comparison(100, 50)])

    assert json.loads((tmp_path / "bench" / "log.json").read_text()) == [
        {
            "name": "ours",
            "value": 100,
            "unit": "messages/s",
            "goal": 200.0,
            "peer": "theirs",
            "peer_value": 50,
            "ratio": 2.0,
        }
    ]


@pytest.mark.parametrize(("better", "goal", "share"), [("higher", "≥ 200", "50%"), ("lower", "≤ 200", "200%")])
def test_the_table_says_how_far_the_goal_is(better: str, goal: str, share: str) -> None:
    line = table([comparison(100, 50, better)]).splitlines()[-1]

    assert line.split("  ")[0] == "ours"
    assert goal in line
    assert share in line


def test_the_table_says_what_ratio_is_wanted_where_one_is() -> None:
    assert table([comparison(100, 50, least_ratio=1.5)]).splitlines()[-1].endswith("2      ≥ 1.5")
    assert table([comparison(100, 50)]).splitlines()[-1].endswith("2      -")


def test_where_only_the_comparison_counts_there_is_no_goal() -> None:
    outcome = comparison(100, 50, goal=None)

    assert as_row(outcome)["goal"] is None
    assert "messages/s  -     -        theirs" in table([outcome])


def test_the_command_prints_a_table_and_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def group(_folder: Path) -> Iterator[list[Benchmark]]:
        yield [Benchmark(scripted("ours", [6, 6]), (scripted("theirs", [3, 3]),), "messages/s", 10.0)]

    monkeypatch.setattr("tests.benchmarks.__main__.find_group", lambda _name: group)

    assert main(["log", "--rounds", "2", "--output", str(tmp_path)]) == 0

    assert json.loads((tmp_path / "log.json").read_text())[0]["ratio"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["log.json"], "the data is gone"
    told = capsys.readouterr()
    assert "median of 2 rounds" in told.out
    assert told.err == "1 of 1: ours: 6 messages/s (≥ 10); theirs 3\n"


def test_a_part_of_a_group_is_measured_by_its_name(tmp_path: Path) -> None:
    @contextmanager
    def group(_folder: Path) -> Iterator[list[Benchmark]]:
        yield [Benchmark(scripted(name, [6]), (scripted("theirs", [3]),), "messages/s", 10.0) for name in "ab"]

    assert [one.benchmark.subject.name for one in run_group(group, 1, tmp_path, only="b")] == ["b"]


def test_services_of_a_group_stop_when_a_measurement_fails(tmp_path: Path) -> None:
    stopped: list[bool] = []

    @contextmanager
    def group(_folder: Path) -> Iterator[list[Benchmark]]:
        try:
            yield [Benchmark(scripted("ours", []), (scripted("theirs", [1]),), "messages/s", 10.0)]
        finally:
            stopped.append(True)

    with pytest.raises(StopIteration):
        run_group(group, rounds=1, output=tmp_path)

    assert stopped == [True]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [("typo", "there is no group 'typo'"), ("cluster", "group 'cluster' has no benchmarks yet")],
)
def test_an_unknown_or_empty_group_lists_those_there_are(
    name: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(groups, "filled_groups", lambda: ("log", "api"))

    assert main([name]) == 2

    assert capsys.readouterr().err == f"benchmarks: {problem}; those with benchmarks are: log, api\n"


def test_every_filled_group_opens() -> None:
    for peer in ("lmdb", "persistqueue", "nats"):
        pytest.importorskip(peer, reason="`make bench` installs the peers")

    assert {"log", "log-growth", "log-latency", "routing"} <= set(groups.filled_groups())
    assert all(callable(groups.find_group(name)) for name in groups.filled_groups())


def test_a_group_of_two_words_is_a_module_of_two_words() -> None:
    assert groups.find_group("log-growth").__module__ == "tests.benchmarks.groups.log_growth"


def test_a_tally_takes_every_message_once_and_in_order() -> None:
    tally = Tally("log", 5)
    tally.take([payload(number) for number in range(3)])
    assert not tally.is_complete
    tally.take([payload(number) for number in range(3, 5)])

    assert tally.is_complete
    tally.check()


@pytest.mark.parametrize("numbers", [[0, 2], [0, 1, 1], [0, 1, 2, 4]])
def test_a_tally_notices_what_is_missing_or_comes_again(numbers: list[int]) -> None:
    with pytest.raises(AssertionError, match="in the place of"):
        Tally("log", len(numbers)).take([payload(number) for number in numbers])


def test_a_tally_notices_a_short_payload_and_an_early_end() -> None:
    short = Tally("log", 2)
    short.take([payload(0)[:-1], payload(1)])
    with pytest.raises(AssertionError, match="log, bytes: 199 of 200 arrived"):
        short.check()

    early = Tally("log", 2)
    early.take([payload(0)])
    with pytest.raises(AssertionError, match="log: 1 of 2 arrived"):
        early.check()


def test_the_first_pack_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally("kafka", 6)
    packs = iter([[0, 1], [2, 3, 4], [5]])

    def take_pack() -> None:
        tally.take([payload(number) for number in next(packs)])

    take_pack()
    seconds = iter([100.0, 102.0])
    monkeypatch.setattr("tests.benchmarks.workload.time.perf_counter", lambda: next(seconds))
    assert rate_behind_first(tally, 6, take_pack) == 2.0


def test_every_peer_does_the_same_work_and_says_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    work = Work(3)
    for number in range(3):
        assert not work.is_done
        work.handle(payload(number))
    assert work.is_done
    work.report()
    told = json.loads(capsys.readouterr().out)
    assert (told["count"], told["total"]) == (3, 3)
    assert told["seconds"] > 0


def test_a_peer_without_its_environment_is_not_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "_ROOT", tmp_path)
    monkeypatch.setattr(frameworks, "_ENVIRONMENTS", tmp_path / "peers")
    with pytest.raises(NotAvailable, match="not installed in peers/quix; run `make bench NAME=kafka`"):
        frameworks._python_of("quix")


def test_peers_fetch_as_ours_does() -> None:
    ours = consumer_settings(DEFAULT_CONSUMING, DEFAULT_KAFKA, grows=False)
    told = frameworks.fetching()
    assert {name: told[name] for name in told if name in ours} == {
        name: ours[name]
        for name in ("max.partition.fetch.bytes", "queued.max.messages.kbytes", "fetch.queue.backoff.ms")
    }
    assert Task("", "", "", 0, told) == Task(**json.loads(json.dumps(asdict(Task("", "", "", 0, told)))))


def test_the_bare_loops_write_a_key_as_its_text_and_read_it_again() -> None:
    key = UUID(int=7)
    text = bare_kafka._KeyTexts()[key.int]
    assert text == str(key).encode()
    assert bare_kafka._key_of(text) == key


def test_producing_by_default_is_as_the_settings_say() -> None:
    assert (BY_DEFAULT.acks, BY_DEFAULT.linger_ms, BY_DEFAULT.batch_size) == ("all", 1, 16_384)


def test_a_peer_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)nobody ended with 1 and 0 answers.*No module named"):
        frameworks._run(sys.executable, "nobody", Task("", "", "", 0, {}), tmp_path)


def test_batches_hold_every_message_of_the_workload_in_order() -> None:
    cut = list(batches(messages(BATCH + 1)))

    assert [len(batch) for batch in cut] == [BATCH, 1]
    assert [number_in(message.data) for batch in cut for message in batch] == list(range(BATCH + 1))


@contextmanager
def preparing(ready: Path, everyone: int) -> Iterator[Callable[[], int]]:
    """Work that counts who is prepared when it begins."""
    ready.touch()
    yield lambda: len(list(ready.parent.iterdir())) - everyone


@contextmanager
def dying() -> Iterator[Callable[[], None]]:
    yield lambda: os._exit(3)


def test_work_in_processes_begins_when_all_are_prepared(tmp_path: Path) -> None:
    before = time.perf_counter()
    outcomes = run_together([partial(preparing, tmp_path / str(number), 2) for number in range(2)])

    assert [outcome.result for outcome in outcomes] == [0, 0]
    assert 0 < took_s(outcomes) < time.perf_counter() - before, "the processes share the clock"


def test_a_process_that_dies_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="died"):
        run_together([dying, partial(preparing, tmp_path / "other", 1)])


def test_at_least_one_round(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["log", "--rounds", "0"])
    assert "--rounds" in capsys.readouterr().err
