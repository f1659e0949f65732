"""`manage.py log`: inspect, verify and dump, as someone on call uses them."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from queuecore.messages import QueueMessage
from queuecore.providers.base import MIN_SEGMENT_BYTES, TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.files import partition_dir
from queuecore.providers.options import ProducerOptions
from queuecore.sending import send, send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition, TopicPartitionInfo

ROOT = Path(__file__).parents[2]
INFOS = [TopicPartitionInfo("orders", number, use_internal_partition=True) for number in range(2)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A log with a few records in two partitions, closed."""
    folder = tmp_path / "log"
    with closing(LogProvider(folder, ProducerOptions(compression="lz4"))) as provider:
        provider.admin().create_topics([TopicSpec("orders", 2)])
        for number in range(5):
            message = QueueMessage(b"key", f"order {number}".encode(), {"name": b"value"})
            send_and_wait(provider.producer(), INFOS[0], message, DEADLINE_S)
        producer = provider.transactional_producer("shop")
        with producer.begin() as transaction:
            transaction.send(INFOS[1], QueueMessage(uuid4(), b"paid"))
        producer.stop()
    return folder


def run(action: str, *options: str, root: Path, topic: str = "orders") -> str:
    out = StringIO()
    call_command("log", action, topic, "--root", str(root), *options, stdout=out, stderr=out)
    return out.getvalue()


def segment(root: Path, partition: int = 0) -> Path:
    [path] = partition_dir(root, ProviderPartition("orders", partition)).glob("*.log")
    return path


def flip(path: Path, position: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[position] ^= 1
    path.write_bytes(raw)


# --- inspect


def test_inspect_shows_every_partition_in_tables(root: Path) -> None:
    shown = run("inspect", root=root)
    lines = shown.splitlines()
    assert lines[0] == "orders[0]"
    assert lines[1].startswith("end 5, beginning 0, on disk up to 5; notes valid: segment 0 is whole up to position ")
    head, row = lines[lines.index("Segments") + 1 :][:2]
    assert head.split() == ["base", "end", "bytes", "batches", "records", "first", "last", "compression", "index"]
    assert row.split()[:2] == ["0", "5"]
    assert row.split()[3:5] == ["5", "5"]
    assert row.endswith("agree")
    assert row[: head.index("records") + len("records")].endswith("        5")
    assert row[head.index("first") - 2 :].startswith("  20")
    assert "orders[1]" in lines
    assert any(line.split() == ["1", "committed", "0", "1", "1"] for line in lines)
    assert shown.count("Damage\nnone") == 2


def test_inspect_of_one_partition_as_json(root: Path) -> None:
    [report] = json.loads(run("inspect", "--partition", "1", "--json", root=root))
    assert (report["topic"], report["partition"]) == ("orders", 1)
    assert report["page"]["end"] == 1
    assert report["segments"][0]["file"] == str(segment(root, 1))
    assert report["transactions"] == [
        {"number": 1, "outcome": "committed", "first_offset": 0, "batches": 1, "records": 1}
    ]
    assert report["damage"] == []


def test_inspect_shows_damage_and_is_no_failure(root: Path) -> None:
    flip(segment(root), 200)
    shown = run("inspect", root=root)
    assert f"{segment(root)}: position 1" in shown


# --- verify


def test_verify_says_that_everything_is_sound(root: Path) -> None:
    first, second = run("verify", root=root).splitlines()
    assert first.startswith("orders[0]: 1 segments, 5 batches, 5 records, ")
    assert first.endswith(" bytes: sound")
    assert second.startswith("orders[1]: 1 segments, 1 batches, 1 records, ")


def test_verify_says_where_the_damage_is_and_fails(root: Path) -> None:
    path = segment(root)
    flip(path, 20)
    flip(path, path.stat().st_size - 1)
    out = StringIO()
    with pytest.raises(CommandError, match=r"topic 'orders' is damaged in 2 place\(s\)") as failed:
        call_command("log", "verify", "orders", "--root", str(root), stdout=out)
    assert failed.value.returncode == 1
    first, last, summary, _ = out.getvalue().splitlines()
    assert first.startswith(f"{path}: position 16 (")
    assert first.endswith("offsets 0 to 0 cannot be read")
    assert last.startswith(f"{path}: position ")
    assert last.endswith("no offset from 4 on can be read in this file")
    assert summary.endswith("bytes: damaged in 2 place(s)")


def test_verify_as_json_lists_the_damage(root: Path) -> None:
    flip(segment(root), 20)
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("log", "verify", "orders", "--root", str(root), "--json", stdout=out)
    [damage] = json.loads(out.getvalue())[0]["damage"]
    assert (damage["file"], damage["position"]) == (str(segment(root)), 16)


def test_the_exit_code_is_1_with_damage_and_2_with_anything_else(root: Path) -> None:
    command = [sys.executable, "manage.py", "log", "verify", "orders", "--root", root]
    environment = os.environ | {"SWITCHYARD_DATA_DIR": str(root.parent)}
    assert subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True).returncode == 0
    flip(segment(root), 20)
    failed = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "is damaged in 1 place(s)" in failed.stderr
    command[4] = "letters"
    failed = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert failed.returncode == 2
    assert failed.stderr.strip() == "CommandError: topic 'letters' does not exist; create it first"


def test_a_log_that_is_written_to_and_cleaned_is_sound_at_any_time(tmp_path: Path) -> None:
    spec = TopicSpec("orders", segment_bytes=MIN_SEGMENT_BYTES, cleanup="compact")
    with closing(LogProvider(tmp_path, ProducerOptions(acks="1"), clean_every_s=0.02)) as provider:
        provider.admin().create_topics([spec])
        done = threading.Event()
        producer = provider.producer()

        def produce() -> None:
            number = 0
            while not done.is_set():
                futures = [
                    send(producer, INFOS[0], QueueMessage(b"%d" % (key % 30), os.urandom(5_000)))
                    for key in range(number, number + 50)
                ]
                number += 50
                for future in futures:
                    future.result(DEADLINE_S)

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            wait_until(lambda: is_sound(tmp_path) and provider._catalog.compacted_to(INFOS[0].place) > 1_000)
        finally:
            done.set()
            thread.join(DEADLINE_S)


def is_sound(root: Path) -> bool:
    shown = run("verify", root=root)
    assert shown.endswith("sound\n")
    return True


# --- dump


def test_dump_prints_one_json_object_a_line(root: Path) -> None:
    lines = [json.loads(line) for line in run("dump", root=root).splitlines()]
    assert [(line["partition"], line["offset"], line["data"]) for line in lines] == [
        (0, 0, "order 0"), (0, 1, "order 1"), (0, 2, "order 2"), (0, 3, "order 3"), (0, 4, "order 4"), (1, 0, "paid"),
    ]  # fmt: skip
    assert lines[0]["key"] == "key"
    assert lines[0]["headers"] == {"name": "value"}
    assert lines[5]["transaction"] == {"number": 1, "outcome": "committed"}


def test_dump_of_a_part(root: Path) -> None:
    lines = run("dump", "--partition", "0", "--from", "2", "--max", "2", root=root).splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [2, 3]


def test_dump_shows_what_can_be_read_and_fails(root: Path) -> None:
    flip(segment(root), 20)
    out, error = StringIO(), StringIO()
    with pytest.raises(CommandError):
        call_command("log", "dump", "orders", "--partition", "0", "--root", str(root), stdout=out, stderr=error)
    assert [json.loads(line)["offset"] for line in out.getvalue().splitlines()] == [1, 2, 3, 4]
    assert str(segment(root)) in error.getvalue()


# --- clean


def test_clean_removes_what_is_to_go(root: Path) -> None:
    with closing(LogProvider(root)) as provider:
        provider.admin().delete_records({INFOS[0].place: 5})
    call_command("log", "clean", "--root", str(root))
    assert segment(root).name == "00000000000000000005.log"
    assert segment(root, 1).name == "00000000000000000000.log"


def test_clean_makes_no_log_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there is no log under"):
        call_command("log", "clean", "--root", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


# --- where


def test_the_installation_s_log_is_the_default(root: Path, settings: Any) -> None:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, data_dir=root.parent)
    out = StringIO()
    call_command("log", "verify", "orders", stdout=out)
    assert "5 records" in out.getvalue()


@pytest.mark.parametrize("action", ["inspect", "verify", "dump"])
def test_what_is_not_there_is_a_clear_error(root: Path, tmp_path: Path, action: str) -> None:
    with pytest.raises(CommandError, match="topic 'letters' does not exist"):
        run(action, root=root, topic="letters")
    with pytest.raises(CommandError, match="topic 'orders' has partitions 0 to 1; there is no 2"):
        run(action, "--partition", "2", root=root)
    with pytest.raises(CommandError, match=f"there is no log under {tmp_path / 'elsewhere'}"):
        run(action, root=tmp_path / "elsewhere")
    shutil.rmtree(partition_dir(root, INFOS[1].place))
    with pytest.raises(CommandError, match=r"orders\[1\] has no (folder|page): .* is missing"):
        run(action, "--partition", "1", root=root)
    catalog = root / "catalog.sqlite3"
    raw = catalog.read_bytes()
    catalog.write_bytes(raw[:4096] + os.urandom(len(raw) - 4096))
    with pytest.raises(CommandError, match=f"the catalog {catalog} is damaged: .*; restore it"):
        run(action, root=root)


@pytest.fixture
def read_only(root: Path) -> Iterator[Path]:
    """For everyone but the superuser, who may write all the same; what is there afterwards tells for both."""
    paths = [root, *root.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield root
    for path, mode in modes.items():
        path.chmod(mode)


def test_a_read_only_folder_will_do_and_stays_as_it_is(read_only: Path) -> None:
    def state() -> dict[Path, tuple[int, bytes]]:
        files = [path for path in read_only.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    assert run("verify", root=read_only).endswith("sound\n")
    assert "orders[1]" in run("inspect", root=read_only)
    assert len(run("dump", root=read_only).splitlines()) == 6
    assert state() == before
