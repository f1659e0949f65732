"""`manage.py resolve`: which partition an entity's messages go to."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queueapi.cluster.store import DatabaseStore

ROOT = Path(__file__).parents[2]
DEVICE = "784f394c-42b6-435a-983c-b7beff2784f9"


def resolve(*arguments: str) -> list[dict[str, Any]]:
    output = io.StringIO()
    call_command("resolve", *arguments, stdout=output)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_one_object_a_line_in_the_order_asked() -> None:
    assert resolve("--hash", "murmur3_128", "--partitions", "10", DEVICE, "Main") == [
        {"entity": DEVICE, "hash": -1365553268, "partition": 8},
        {"entity": "Main", "hash": 851896785, "partition": 5},
    ]


@pytest.mark.parametrize(
    ("name", "number", "partition"),
    [("murmur3_128", -1365553268, 8), ("murmur3_32", 1278706996, 16), ("sha256", -946518300, 0)],
)
def test_each_hash_function(name: str, number: int, partition: int) -> None:
    assert resolve("--hash", name, "--partitions", "30", DEVICE) == [
        {"entity": DEVICE, "hash": number, "partition": partition}
    ]


def test_the_default_is_murmur3_128() -> None:
    assert resolve("--partitions", "12", "tb_core") == [{"entity": "tb_core", "hash": 560502426, "partition": 6}]


def test_only_the_canonical_form_is_a_uuid() -> None:
    canonical, upper, bare, braced = resolve(
        "--partitions", "10", DEVICE, DEVICE.upper(), DEVICE.replace("-", ""), f"{{{DEVICE}}}"
    )
    assert canonical["hash"] == upper["hash"]
    assert len({found["hash"] for found in (canonical, bare, braced)}) == 3


@pytest.mark.parametrize("wrong", ["9" * 5_000, "10001", "0" * 5_000, ""])
def test_a_number_of_partitions_there_cannot_be_is_refused(wrong: str) -> None:
    with pytest.raises(CommandError, match=r"^--partitions is '.{0,31}'; give a whole number"):
        resolve("--partitions", wrong, DEVICE)


def test_entities_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"a\r\n{DEVICE}\ntenant-1"))
    assert [(found["entity"], found["partition"]) for found in resolve("--partitions", "10", "-")] == [
        ("a", 9),
        (DEVICE, 8),
        ("tenant-1", 9),
    ]


@pytest.mark.parametrize("count", ["0", "-3", "many", "1.5", "", "+3", "\N{FULLWIDTH DIGIT ONE}"])
def test_a_count_that_is_none_is_refused(count: str) -> None:
    with pytest.raises(CommandError, match=r"--partitions is .* give a whole number of 1 or more"):
        resolve(f"--partitions={count}", "a")


def test_an_unknown_hash_function_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CommandError, match=r"no hash function 'md5'; choose one of murmur3_128, murmur3_32"):
        resolve("--hash", "md5", "--partitions", "10", "a")


def test_an_entity_that_is_no_text_is_refused() -> None:
    with pytest.raises(CommandError, match=r"entity '\\udcff' is not UTF-8 text"):
        resolve("--partitions", "10", "\udcff")


def test_a_queue_is_resolved_by_the_latest_routing_version(installation) -> None:
    [found] = resolve("--queue", "telemetry", DEVICE)
    assert found == {
        "entity": DEVICE,
        "hash": -1365553268,
        "partition": 2,
        "topic": "telemetry.2",
        "version": DatabaseStore().routing_version(),
    }
    assert resolve("--queue", "Telemetry", "--tenant", str(installation.tenant.id), DEVICE) == [found]
    with pytest.raises(CommandError, match="did you mean 'telemetry'"):
        resolve("--queue", "telemetri", DEVICE)


def manage(tmp_path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", "resolve", *arguments],
        cwd=ROOT,
        env={**os.environ, "SWITCHYARD_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_on_the_command_line(tmp_path: Path) -> None:
    done = manage(tmp_path, "--hash", "sha256", "--partitions", "10", DEVICE, "größe")
    assert done.returncode == 0
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == {"entity": DEVICE, "hash": -946518300, "partition": 0}
    assert second["entity"] == "größe"
    assert done.stderr == ""


@pytest.mark.parametrize("wrong", [["--partitions", "0"], ["--partitions", "5", "--hash", "md5"], []])
def test_what_is_wrong_ends_with_a_line_and_a_code(tmp_path: Path, wrong: list[str]) -> None:
    done = manage(tmp_path, *wrong, "a")
    assert done.returncode != 0
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
