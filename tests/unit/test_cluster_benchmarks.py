"""The cluster's benchmarks: the sequence that all assignors go through, and Kafka's assignors beside ours."""

from pathlib import Path

import pytest

from queuecore.cluster.assignment import Assignor
from tests.benchmarks.cluster_assignment import Workload, kafkas, ours
from tests.benchmarks.cluster_sequence import CHANGES, WORK, Contestant, sequence
from tests.benchmarks.measuring import NotAvailable
from tests.benchmarks.peers.kafka_assignors import KafkaAssignor, kafka_assignors


def test_the_sequence_has_every_change_and_ends_with_a_restart_of_each(tmp_path: Path) -> None:
    steps = list(sequence())
    assert list(dict.fromkeys(part for part, _ in steps)) == ["100 start", *CHANGES]
    assert [len(alive) for _, alive in steps[:6]] == [100, 101, 110, 109, 99, 98]
    assert {service for _, alive in steps[5::2] for service in steps[4][1] if service not in alive} == set(steps[4][1])


def test_ours_moves_what_it_must(tmp_path: Path) -> None:
    sticky = Contestant(ours(Assignor.STICKY, WORK))
    assert sticky.moves("1 joins")(tmp_path) == 1000 // 101
    assert sticky.spread("1 joins")(tmp_path) == 1
    assert sticky.took_s(tmp_path) > 0


def test_without_java_kafkas_assignors_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with kafka_assignors(tmp_path / "jvm") as jvm, pytest.raises(NotAvailable, match="Java is not installed"):
        kafkas("range", WORK, jvm)(["a"], {})


@pytest.mark.parametrize(("assignor", "moved"), [("cooperative", 2), ("range", 3)])
def test_kafkas_assignors_answer(tmp_path: Path, assignor: KafkaAssignor, moved: int) -> None:
    """Six partitions on two members, and a third that comes before them."""
    with kafka_assignors(tmp_path) as jvm:
        planner = kafkas(assignor, Workload(1, 6), jvm)
        try:
            before, _ = planner(["b", "c"], {})
        except NotAvailable as reason:
            pytest.skip(str(reason))
        after, took_s = planner(["a", "b", "c"], before)
    assert sorted(after) == [f"q0-{number}" for number in range(6)]
    assert sum(after[partition] != owner for partition, owner in before.items()) == moved
    assert took_s > 0
