"""The programs that show how instances of services are told something do what they say."""

from pathlib import Path

import pytest

from queuecore.testing.services import KafkaService
from tests.integration.test_examples import ROOT, run, run_snippets

NOTIFICATIONS = [
    "tb_core.notifications.core-1: core-1 got 21.5 degrees, core-2 heard nothing",
    "tb_rule_engine.notifications.re-1: re-1 knows 0 profiles",
    "tb_rule_engine.notifications.re-2: re-2 knows 0 profiles",
    "tb_transport.notifications.mqtt-1: the session is closed at mqtt-1, open at mqtt-2",
    (
        "unknown_service: there is no service 'core-3' in the cluster; did you mean 'core-2' or 'core-1' or 're-2'? "
        "Start it, or look up again who is there"
    ),
    "tb_core.edge.notifications.edge-1: asset added, rule chain changed",
]
RPC = [
    "core-1: 10 of its 10 requests answered, 0 of others",
    "core-2: 10 of its 10 requests answered, 0 of others",
    "transport-1: forwarded to its devices 0 2 4 6 8",
    "transport-2: forwarded to its devices 1 3 5 7 9",
    "device 7 has 27.0 degrees",
]
EXAMPLES = [("notifications.py", NOTIFICATIONS), ("rpc.py", RPC)]


@pytest.mark.parametrize("provider", ["log", "in-memory"])
@pytest.mark.parametrize(("program", "said"), EXAMPLES)
def test_an_example(tmp_path: Path, program: str, said: list[str], provider: str) -> None:
    assert run([str(ROOT / "examples" / program), "--provider", provider], tmp_path) == said
    assert list(tmp_path.iterdir()) == []


def test_notifications_on_kafka(tmp_path: Path, kafka_service: KafkaService) -> None:
    where = ["--provider", "kafka", "--servers", kafka_service.bootstrap_servers]
    assert run([str(ROOT / "examples" / "notifications.py"), *where], tmp_path) == NOTIFICATIONS


def test_rpc_on_kafka(tmp_path: Path, kafka_service: KafkaService) -> None:
    # Other tests have a queue of that name there.
    where = ["--provider", "kafka", "--servers", kafka_service.bootstrap_servers, "--prefix", "rpc"]
    assert run([str(ROOT / "examples" / "rpc.py"), *where], tmp_path) == RPC


def test_an_example_goes_on_in_a_log_that_is_there(tmp_path: Path) -> None:
    for _ in range(2):
        said = run([str(ROOT / "examples" / "rpc.py"), "--provider", "log", "--folder", "kept"], tmp_path)
        assert said == RPC


def test_the_pieces_of_the_how_to_on_the_cluster(tmp_path: Path) -> None:
    assert run_snippets("docs/howto/cluster.md", tmp_path)[-7:] == [
        "acme.tb_core.notifications.core-1 21.5 degrees",
        "unknown_service",
        "now mine: {'tb_core.0': 3}",
        "False 1",
        "{'notification': b'cluster.partition_change'}",
        "tb_rule_engine.8",
        "() {'transport-1': 2} True",
    ]
