"""The programs and snippets that show how to use the library do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from queuecore.testing.services import KafkaService

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(program: list[str], folder: Path) -> list[str]:
    """What a program says that ends well, run where it finds nothing but what it makes itself."""
    ended = subprocess.run([sys.executable, *program], cwd=folder, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def run_snippets(document: str, folder: Path) -> list[str]:
    """Run what a document shows as Python, from top to bottom, as one program in this checkout."""
    pieces = PYTHON.findall((ROOT / document).read_text())
    assert pieces
    return run(["-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + "\n".join(pieces)], folder)


SHOP = [
    "300 orders placed, 299 shipped by a group of 3 workers, 1 put aside",
    "20 of 20 customers got theirs in order",
    'put aside: {"customer": 7, "number": 7}: nobody lives at this address',
]


@pytest.mark.parametrize("provider", ["log", "in-memory"])
def test_ecommerce(tmp_path: Path, provider: str) -> None:
    assert run([str(ROOT / "examples" / "ecommerce.py"), "--provider", provider], tmp_path) == SHOP


def test_ecommerce_on_kafka(tmp_path: Path, kafka_service: KafkaService) -> None:
    where = ["--provider", "kafka", "--servers", kafka_service.bootstrap_servers]
    assert run([str(ROOT / "examples" / "ecommerce.py"), *where], tmp_path) == SHOP


@pytest.mark.parametrize("provider", ["log", "in-memory"])
def test_log_aggregation(tmp_path: Path, provider: str) -> None:
    assert run([str(ROOT / "examples" / "log_aggregation.py"), "--provider", provider], tmp_path) == [
        "1000 lines published by 4 services, 1000 indexed",
        "api-gateway: 225 INFO, 25 ERROR",
        "billing: 225 INFO, 25 ERROR",
        "catalogue: 225 INFO, 25 ERROR",
        "search: 225 INFO, 25 ERROR",
        "lines per partition: 250 250 250 250",
    ]


FIELDS = [
    "run 1: 500 readings of 10 devices",
    "run 2: 500 readings of 10 devices",
    "device 0: 24.5 degrees on average",
    "device 1: 25.5 degrees on average",
    "device 2: 26.5 degrees on average",
]


@pytest.mark.parametrize("provider", ["log", "in-memory"])
def test_calculated_fields(tmp_path: Path, provider: str) -> None:
    assert run([str(ROOT / "examples" / "calculated_fields.py"), "--provider", provider], tmp_path) == FIELDS


def test_calculated_fields_on_kafka(tmp_path: Path, kafka_service: KafkaService) -> None:
    where = ["--provider", "kafka", "--servers", kafka_service.bootstrap_servers]
    assert run([str(ROOT / "examples" / "calculated_fields.py"), *where], tmp_path) == FIELDS


def test_examples_leave_nothing_behind(tmp_path: Path) -> None:
    run([str(ROOT / "examples" / "log_aggregation.py")], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_example_can_keep_its_log(tmp_path: Path) -> None:
    run([str(ROOT / "examples" / "ecommerce.py"), "--folder", "kept"], tmp_path)
    assert (tmp_path / "kept" / "catalog.sqlite3").exists()


def test_the_snippet_of_the_readme(tmp_path: Path) -> None:
    assert run_snippets("README.md", tmp_path) == ["shipping 2 apples"]


def test_the_pieces_of_the_how_to(tmp_path: Path) -> None:
    said = run_snippets("docs/howto/use-the-library.md", tmp_path)
    topic, *rest = said
    assert re.fullmatch(r"orders\.[0-3]", topic)
    assert rest[0] == "2 apples for customer-123, attempt 1"
    assert "b'3 pears' no price for pears 2" in rest
    assert rest[-1] == "LogTbTransportQueueFactory tb_rule_engine 10"


def test_the_pieces_of_the_how_to_on_handlers(tmp_path: Path) -> None:
    assert run_snippets("docs/howto/write-a-handler.md", tmp_path) == [
        "orders: 2 apples, attempt 1",
        "told customer-123",
        "to us@example.org: 2 apples",
        "2 apples of partition 0",
        "undecodable",
    ]


def test_the_pieces_of_the_how_to_on_requests(tmp_path: Path) -> None:
    assert run_snippets("docs/howto/requests.md", tmp_path) == [
        "b'0.50'",
        "unknown_fruit nobody sells that",
        "0 ()",
        'pending_requests_count{request_topic="prices.requests",service_id="shop-1"} 0.0',
    ]


def test_the_pieces_of_the_how_to_on_metrics(tmp_path: Path) -> None:
    [shown] = run_snippets("docs/howto/metrics.md", tmp_path)
    assert re.fullmatch(r'queue_producer_sent_total\{partition="0",topic="orders\.0"\} 1\.0', shown)
