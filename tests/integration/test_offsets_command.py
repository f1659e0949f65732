"""`manage.py offsets`: show and reset, as someone on call uses them."""

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queueapi import runtime
from queueapi.models import AuditEntry
from queuecore.messages import QueueMessage
from queuecore.providers.base import Provider, TopicSpec
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo

GROUP = "orders-consumer"
INFOS = [TopicPartitionInfo("orders", number, use_internal_partition=True) for number in range(2)]
FIRST, SECOND = (info.place for info in INFOS)


@pytest.fixture(autouse=True)
def provider(tmp_path: Path, settings: Any, db: None) -> Iterator[Provider]:
    """Five records in one partition, of which the group has done three; none in the other."""
    settings.SWITCHYARD = replace(settings.SWITCHYARD, data_dir=tmp_path)
    runtime.close_provider()
    provider = runtime.provider()
    provider.admin().create_topics([TopicSpec("orders", 2), TopicSpec("letters")])
    for _ in range(5):
        send_and_wait(provider.producer(), INFOS[0], QueueMessage(None, b"x"), DEADLINE_S)
    provider.admin().alter_group_offsets(GROUP, {FIRST: 3})
    yield provider
    runtime.close_provider()


def run(action: str, *options: str, group: str = GROUP) -> list[list[str]]:
    """The words of each line."""
    out = StringIO()
    call_command("offsets", action, group, *options, stdout=out)
    return [line.split() for line in out.getvalue().splitlines()]


def committed(provider: Provider) -> dict[Any, int]:
    return dict(provider.admin().committed_offsets({GROUP: [FIRST, SECOND]})[GROUP])


# --- show


def test_show_has_a_line_for_each_partition_the_group_read() -> None:
    assert run("show") == [
        ["topic", "partition", "beginning", "end", "committed", "lag"],
        ["orders", "0", "0", "5", "3", "2"],
    ]


def test_show_of_a_topic_has_them_all() -> None:
    assert run("show", "--topic", "orders")[1:] == [
        ["orders", "0", "0", "5", "3", "2"],
        ["orders", "1", "0", "0", "-", "-"],
    ]
    assert run("show", "--topic", "orders", "--partition", "1")[1:] == [["orders", "1", "0", "0", "-", "-"]]


def test_a_group_nobody_knows_is_a_clear_error() -> None:
    with pytest.raises(CommandError, match="group 'nobody' has committed nothing; check its name") as failed:
        run("show", group="nobody")
    assert failed.value.returncode == 2


# --- reset


@pytest.mark.parametrize(
    ("target", "new", "skipped", "again", "remark"),
    [
        (["--to-earliest"], "0", "0", "3", []),
        (["--to-latest"], "5", "2", "0", []),
        (["--to-last", "1"], "4", "1", "0", []),
        (["--to-offset", "3"], "3", "0", "0", ["as", "it", "is"]),
        (["--to-offset", "9"], "5", "2", "0", ["9", "is", "not", "stored"]),
        (["--to-time", "2001-02-03T04:05Z"], "0", "0", "3", []),
        (["--to-time", "2999-02-03T04:05+02:00"], "5", "2", "0", []),
        (["--shift-by", "-2"], "1", "0", "2", []),
    ],
)
def test_a_reset_is_shown_and_changes_nothing(
    provider: Provider, target: list[str], new: str, skipped: str, again: str, remark: list[str]
) -> None:
    head, row, last = run("reset", "--topic", "orders", "--partition", "0", *target)
    assert head[-4:] == ["new", "skipped", "again", "remark"]
    assert row == ["orders", "0", "0", "5", "3", "2", new, skipped, again, *remark]
    assert " ".join(last).startswith("Nothing has changed; ")
    assert committed(provider) == {FIRST: 3}


def preview(*options: str) -> str:
    """The token of a reset that is shown."""
    *_, last = run("reset", "--topic", "orders", *options)
    return last[-1].rstrip(".")


def test_a_reset_that_is_applied_changes_what_it_showed(provider: Provider) -> None:
    *_, last = run("reset", "--topic", "orders", "--to-latest", "--apply", preview("--to-latest"))
    assert " ".join(last) == "Done: group orders-consumer was changed in 2 of 2 partition(s)."
    assert committed(provider) == {FIRST: 5, SECOND: 0}
    [entry] = AuditEntry.objects.filter(action="reset_offsets")
    assert (entry.actor_name, entry.object_id) == ("system", GROUP)
    assert entry.before["offsets"] == {"orders[0]": 3, "orders[1]": None}
    assert entry.after["offsets"] == {"orders[0]": 5, "orders[1]": 0}


def test_what_is_published_since_does_not_keep_a_group_from_its_end(provider: Provider) -> None:
    token = preview("--to-latest")
    send_and_wait(provider.producer(), INFOS[0], QueueMessage(None, b"x"), DEADLINE_S)
    run("reset", "--topic", "orders", "--to-latest", "--apply", token)
    assert committed(provider) == {FIRST: 6, SECOND: 0}


def test_a_reset_that_has_been_applied_is_not_applied_again(provider: Provider) -> None:
    back = ("--partition", "0", "--shift-by", "-1")
    token = preview(*back)
    run("reset", "--topic", "orders", *back, "--apply", token)
    with pytest.raises(CommandError, match=f"{token} was shown for another reset.*has committed.*--apply ") as failed:
        run("reset", "--topic", "orders", *back, "--apply", token)
    assert failed.value.returncode == 2
    assert committed(provider) == {FIRST: 2}


def test_a_group_that_has_committed_since_it_was_shown_is_left_alone(provider: Provider) -> None:
    token = preview("--to-earliest")
    provider.admin().alter_group_offsets(GROUP, {FIRST: 4})
    with pytest.raises(CommandError, match="was shown for another reset"):
        run("reset", "--topic", "orders", "--to-earliest", "--apply", token)
    assert committed(provider) == {FIRST: 4}


def test_where_it_would_go_on_has_moved_since_it_was_shown(provider: Provider) -> None:
    token = preview("--to-earliest")
    provider.admin().delete_records({FIRST: 1})
    with pytest.raises(CommandError, match="what is stored has changed since"):
        run("reset", "--topic", "orders", "--to-earliest", "--apply", token)
    assert committed(provider) == {FIRST: 3}


@pytest.mark.parametrize("other", [["--to-offset", "0"], ["--to-earliest", "--partition", "0"]])
def test_a_token_is_good_for_the_reset_it_was_shown_with_alone(provider: Provider, other: list[str]) -> None:
    token = preview("--to-earliest")
    with pytest.raises(CommandError, match="the options are others"):
        run("reset", "--topic", "orders", *other, "--apply", token)
    assert committed(provider) == {FIRST: 3}


def test_a_group_that_reads_is_not_reset(provider: Provider) -> None:
    consumer = provider.consumer(GROUP)
    consumer.subscribe(INFOS)
    try:
        wait_until(lambda: consumer.poll(10))
        with pytest.raises(CommandError, match="orders-consumer") as failed:
            run("reset", "--topic", "orders", "--to-earliest", "--apply", preview("--to-earliest"))
        assert failed.value.returncode == 2
    finally:
        consumer.stop()
    assert committed(provider) == {FIRST: 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--topic", "nowhere", "--to-latest"], "there is no topic 'nowhere'; check its name"),
        (["--topic", "orders", "--partition", "7", "--to-latest"], "'orders' has partitions 0 to 1; there is no 7"),
        (["--topic", "orders", "--to-latest", "--apply"], "--apply: expected one argument"),
        (
            ["--topic", "orders", "--shift-by", "1"],
            r"committed nothing in orders\[1\]",
        ),
        (["--to-latest"], "required: --topic"),
        (["--topic", "orders"], "one of the arguments --to-earliest"),
        (["--topic", "orders", "--to-latest", "--to-offset", "1"], "not allowed with"),
        (["--topic", "orders", "--to-time", "2030-01-31T08:00"], "has no time zone; write 2030-01-31T08:00Z for UTC"),
        (["--topic", "orders", "--to-time", "noon"], "'noon' is no time; write 2030-01-31T08:00Z"),
    ],
)
def test_what_cannot_be_is_a_clear_error(provider: Provider, options: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("reset", *options)
    assert committed(provider) == {FIRST: 3}


def test_a_partition_needs_its_topic() -> None:
    with pytest.raises(CommandError, match="--partition is a number inside a topic; add --topic"):
        run("show", "--partition", "0")
