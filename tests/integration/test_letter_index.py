"""Letters into the index: whatever their headers hold, they are entered or skipped, never raised."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from queueapi.actions import dead_letters
from queueapi.actions.dead_letters import index_letters
from queueapi.models import DeadLetter
from queuecore.deadletter.envelope import PREFIX
from queuecore.messages import REPLAY_LETTER, TENANT_ID, Record

HUGE = b"9" * 4000


@pytest.fixture
def letter(installation):
    """A record of the dead-letter topic with these headers besides the ones that it needs."""

    def make(number: int = 0, **story: bytes) -> Record:
        headers = {f"{PREFIX}{name.replace('_', '.')}": value for name, value in story.items()}
        headers[f"{PREFIX}queue.id"] = str(installation.queue.id).encode()
        return Record("telemetry.dlq", 0, number, 0, None, headers, b"data")

    return make


def entered(record: Record) -> DeadLetter:
    assert index_letters([record]) == 1
    return DeadLetter.objects.get(letter_offset=record.offset)


def with_headers(record: Record, headers: dict[str, bytes]) -> Record:
    return Record(
        record.topic, record.partition, record.offset, record.timestamp_ms, record.key,
        {**record.headers, **headers}, record.data,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "time"), [(HUGE, datetime(9999, 1, 1, tzinfo=UTC)), (b"-1", datetime(1970, 1, 1, tzinfo=UTC))]
)
def test_times_out_of_range_become_the_nearest(letter, value, time) -> None:
    row = entered(letter(timestamp_ms=value, first_failed_at_ms=value, failed_at_ms=value))
    assert (row.sent_at, row.first_failed_at, row.failed_at) == (time, time, time)


def test_a_time_is_kept_to_the_millisecond(letter) -> None:
    assert entered(letter(failed_at_ms=b"1700000000123")).failed_at.microsecond == 123_000


@pytest.mark.parametrize(("value", "offset", "attempts"), [(HUGE, 2**63 - 1, 2**31 - 1), (b"-5", 0, 0)])
def test_numbers_out_of_range_become_the_nearest(letter, value, offset, attempts) -> None:
    row = entered(letter(attempts=value, offset=value))
    assert (row.offset, row.attempts) == (offset, attempts)


@pytest.mark.parametrize("name", ["topic", "group", "handler", "reason", "exception_class", "fingerprint"])
def test_names_are_cut_to_what_a_column_holds(letter, name) -> None:
    row = entered(letter(**{name: b"x" * 5000}))
    column = "consumer_group" if name == "group" else name
    assert len(getattr(row, column)) == DeadLetter._meta.get_field(column).max_length


def test_nul_is_nowhere_in_a_row(letter) -> None:
    record = letter(topic=b"a\0b", exception_message=b"\0")
    row = entered(with_headers(record, {"na\0me": b"\0", "sur\ud800": b""}))
    assert row.topic == "a\N{REPLACEMENT CHARACTER}b"
    assert row.headers == {"na\N{REPLACEMENT CHARACTER}me": "AA==", "sur?": ""}


def test_ids_that_are_none_are_left_out(letter) -> None:
    row = entered(with_headers(letter(), {TENANT_ID: b"\xff\0", REPLAY_LETTER: b"no-id"}))
    assert (row.tenant, row.replay_of) == (None, None)


def test_what_cannot_be_entered_is_one_line_and_the_others_go_on(letter, monkeypatch, caplog) -> None:
    make_row = dead_letters.to_row

    def broken(record, queue, tenants):
        row = make_row(record, queue, tenants)
        if record.offset == 1:
            row.state = None
        return row

    monkeypatch.setattr(dead_letters, "to_row", broken)
    assert index_letters([letter(0), letter(1), letter(2)]) == 2
    assert [line.getMessage().split(" and ")[0] for line in caplog.records] == [
        "telemetry.dlq[0] offset 1 cannot be entered into the index"
    ]


def test_a_letter_twice_in_one_pack_is_entered_once(letter) -> None:
    assert index_letters([letter(7), letter(7)]) == 1


def test_a_letter_of_no_known_queue_stays_in_its_topic(letter) -> None:
    assert index_letters([with_headers(letter(), {f"{PREFIX}queue.id": str(uuid4()).encode()})]) == 0
