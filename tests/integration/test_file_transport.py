"""Celery's messages in files: whole or not at all, and nothing in the folder can stop a worker."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError

from queueapi import wakeups
from queueapi.celery_config import TASKS_QUEUE, celery_settings
from queueapi.config import Config
from queueapi.file_transport import Channel


@pytest.fixture
def app(tmp_path: Path) -> Celery:
    app = Celery("files", set_as_current=False)
    app.conf.update(celery_settings(Config(data_dir=tmp_path)))
    return app


@pytest.fixture
def connection(app: Celery) -> Iterator[Connection]:
    with app.connection_for_read() as connection:
        yield connection


@pytest.fixture
def channel(connection: Connection) -> Channel:
    channel = connection.default_channel
    assert isinstance(channel, Channel)
    return channel


@contextmanager
def full_disk() -> Iterator[None]:
    """As far as one process can have it to itself: files can be made but not be written, nor can the test's own
    report, so it lasts no longer than what is tested."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files(channel: Channel) -> list[str]:
    return sorted(str(path.relative_to(channel.folder)) for path in channel.folder.rglob("*") if path.is_file())


def send(app: Celery, *args: int) -> None:
    app.send_task("count", args=args, retry=False)


def received(channel: Channel) -> Any:
    """The next task's arguments, or None."""
    message = channel.basic_get(TASKS_QUEUE, no_ack=True)
    return message and message.payload[0]


def test_tasks_arrive_once_in_order_and_leave_nothing(app: Celery, channel: Channel) -> None:
    for number in range(3):
        send(app, number)
    assert channel._size(TASKS_QUEUE) == 3
    assert [received(channel) for _ in range(4)] == [[0], [1], [2], None]
    assert files(channel) == []


def test_a_queue_has_its_own_messages(app: Celery, channel: Channel) -> None:
    app.send_task("count", queue="spark")
    assert received(channel) is None
    assert channel._size("spark") == 1
    assert channel.queue_purge("spark") == 1
    assert channel._size("spark") == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"body": "W10=", "prop', b"\xff\xfe", b"[]", b"5", b"{}", b'{"properties": null}'],
)
def test_a_file_that_is_no_message_is_set_aside_with_one_line(
    app: Celery, channel: Channel, caplog, content: bytes
) -> None:
    (channel.folder / f"0-broken.{TASKS_QUEUE}.msg").write_bytes(content)
    send(app, 1)
    assert received(channel) == [1]
    [record] = caplog.records
    assert "is no message" in record.getMessage()
    assert len(record.getMessage().splitlines()) == 1
    assert record.exc_info is None
    assert files(channel) == [f"taken/0-broken.{TASKS_QUEUE}.msg"]


def test_a_message_is_not_seen_before_it_is_whole(app: Celery, channel: Channel, monkeypatch) -> None:
    seen = []
    rename = Path.rename

    def look_first(path: Path, target: Path) -> Path:
        seen.append((channel._size(TASKS_QUEUE), len(files(channel))))
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", look_first)
        send(app, 1)
    assert seen == [(0, 1)]
    assert received(channel) == [1]


def test_a_message_another_worker_took_is_passed_over(app: Celery, channel: Channel, monkeypatch) -> None:
    send(app, 1)
    send(app, 2)
    first, second = channel._messages(TASKS_QUEUE)
    monkeypatch.setattr(channel, "_messages", lambda queue: iter((first, second)))
    first.unlink()
    assert received(channel) == [2]


def test_a_failed_publish_says_so_and_leaves_nothing(app: Celery, channel: Channel) -> None:
    with pytest.raises(OperationalError, match="cannot store a message in"), full_disk():
        send(app, 1)
    assert files(channel) == []


def test_a_wake_up_without_room_is_left_to_the_sweeper(settings, tmp_path: Path, caplog, request) -> None:
    settings.CELERY = celery_settings(Config(data_dir=tmp_path))
    wakeups._sender.cache_clear()
    request.addfinalizer(wakeups._sender.cache_clear)
    with full_disk():
        wakeups._send("count", "1")
    assert "the sweeper will send it again" in caplog.text


def test_an_unfinished_task_is_there_again_for_the_next_worker(app: Celery, channel: Channel) -> None:
    send(app, 1)
    message = channel.basic_get(TASKS_QUEUE)
    assert channel._size(TASKS_QUEUE) == 0
    channel.qos.append(message, message.delivery_tag)
    channel.close()
    with app.connection_for_read() as other:
        assert received(other.default_channel) == [1]
