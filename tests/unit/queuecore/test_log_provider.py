"""The log provider under bad conditions."""

import json
import subprocess
import sys
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from queuecore.errors import ProviderUnavailable
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.providers.log.files import partition_dir
from queuecore.sending import send, send_and_wait
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import TopicPartitionInfo

ROOT = Path(__file__).parents[3]
INFO = TopicPartitionInfo("topic", 0)
PLACE = INFO.place

# Run as `python -c`: a limit on file sizes cannot be taken back for the whole test run. It stands for a full disk:
# the kernel takes a part of a write and refuses the rest.
FULL_DISK = """
import json, resource, sys
from pathlib import Path
from queuecore.errors import QueueError
from queuecore.messages import QueueMessage
from queuecore.providers.base import TopicSpec
from queuecore.providers.log import LogProvider
from queuecore.sending import send_and_wait
from queuecore.topics import TopicPartitionInfo

info = TopicPartitionInfo("topic", 0)
provider = LogProvider(Path(sys.argv[1]))
provider.admin().create_topics([TopicSpec(info.full_topic_name)])
[segment] = Path(sys.argv[1]).rglob("*.log")

def attempt(number):
    try:
        return send_and_wait(provider.producer(), info, QueueMessage(None, b"%d" % number + bytes(1_000)), 60).offset
    except QueueError as error:
        return [error.code, str(error), segment.stat().st_size]

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
answers = [attempt(number) for number in range(12)]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
answers.append(attempt(12))
provider.close()
print(json.dumps(answers))
"""

WRITER = """
import sys
from pathlib import Path
from queuecore.messages import QueueMessage
from queuecore.providers.log import LogProvider
from queuecore.sending import send_and_wait
from queuecore.topics import TopicPartitionInfo

provider = LogProvider(Path(sys.argv[1]), acks="1")
producer = provider.producer()
sys.stdin.readline()
for number in range(200):
    message = QueueMessage(None, f"{sys.argv[2]} {number}".encode())
    print(send_and_wait(producer, TopicPartitionInfo("topic", 0), message, 60).offset)
provider.close()
"""


def test_a_full_disk_stores_nothing_by_halves_and_passes(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path], cwd=ROOT, check=True, capture_output=True, text=True
    )
    answers = json.loads(child.stdout)
    stored = [number for number, answer in enumerate(answers) if isinstance(answer, int)]
    refused = [answer for answer in answers if not isinstance(answer, int)]
    assert stored[-1] == 12
    assert 0 < len(refused) < 12
    assert len({size for *_, size in refused}) == 1, "a refused message left bytes behind"
    assert refused[0][2] % len(stored[:-1]) == 0
    for code, message, _ in refused:
        assert code == "provider_unavailable"
        assert "nothing of this batch was stored" in message
        assert "Free space" in message
    with closing(LogProvider(tmp_path)) as provider, closing(provider.reader()) as reader:
        records = reader.read(PLACE, 0, 100)
    assert [int(record.data.rstrip(b"\0")) for record in records] == stored
    assert [record.offset for record in records] == [answer for answer in answers if isinstance(answer, int)]


def test_two_processes_share_a_partition_without_gaps(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec(INFO.full_topic_name)])
        children = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, tmp_path, name],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in ("one", "other")
        ]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        told = [child.communicate(timeout=DEADLINE_S)[0].split() for child in children]
        with closing(provider.reader()) as reader:
            records = reader.read(PLACE, 0, 1_000)
    assert [record.offset for record in records] == list(range(400))
    for name, offsets in zip(("one", "other"), told, strict=True):
        mine = [record for record in records if record.data.startswith(name.encode() + b" ")]
        assert [record.data.decode() for record in mine] == [f"{name} {number}" for number in range(200)]
        assert [record.offset for record in mine] == [int(offset) for offset in offsets]


def open_at_once(root: Path, barrier: Barrier) -> None:
    barrier.wait(DEADLINE_S)
    with closing(LogProvider(root)) as provider:
        provider.admin().create_topics([TopicSpec("topic.0")])


def test_processes_may_open_a_new_folder_at_once(tmp_path: Path) -> None:
    fork = get_context("fork")
    for attempt in range(20):
        barrier = fork.Barrier(6)
        children = [fork.Process(target=open_at_once, args=(tmp_path / str(attempt), barrier)) for _ in range(6)]
        for child in children:
            child.start()
        for child in children:
            child.join(DEADLINE_S)
        assert [child.exitcode for child in children] == [0] * 6


def test_a_file_where_the_folder_should_be_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("not a folder")
    with pytest.raises(ProviderUnavailable, match=r"cannot open the log under .*/log: .*; check the folder"):
        LogProvider(tmp_path / "log")


def test_a_file_where_a_partition_should_be_is_a_clear_error(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        provider.admin().create_topics([TopicSpec("topic.0"), TopicSpec("fine.0")])
        folder = partition_dir(tmp_path, PLACE)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        folder.write_text("not a folder")
        futures = [
            send(provider.producer(), info, QueueMessage(None, b"x")) for info in (INFO, TopicPartitionInfo("fine", 0))
        ]
        with pytest.raises(ProviderUnavailable, match=r"cannot write topic\.0\[0\]: .*; mend the folder"):
            futures[0].result(DEADLINE_S)
        assert futures[1].result(DEADLINE_S).offset == 0


def test_a_topic_that_cannot_be_made_is_not_known(tmp_path: Path) -> None:
    with closing(LogProvider(tmp_path)) as provider:
        (tmp_path / "topics").write_text("not a folder")
        with pytest.raises(ProviderUnavailable, match=r"cannot create topic\.0\[0\]: .*; mend the folder"):
            provider.admin().create_topics([TopicSpec("topic.0")])
        assert provider.admin().topics() == {}


def test_a_closed_provider_says_so(tmp_path: Path) -> None:
    provider = LogProvider(tmp_path)
    provider.admin().create_topics([TopicSpec("topic.0")])
    producer = provider.producer()
    provider.close()
    with pytest.raises(ProviderUnavailable, match=r"catalog.*cannot be used"):
        provider.admin().topics()
    with pytest.raises(ProviderUnavailable, match="stopped"):
        send_and_wait(producer, INFO, QueueMessage(None, b"x"), DEADLINE_S)
