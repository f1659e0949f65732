"""Letters into the index: whatever their headers hold, they are entered or skipped, never raised."""

import json
import threading
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import OperationalError, connections

from queueapi import runtime
from queueapi.actions import letter_index
from queueapi.actions.actor import SYSTEM
from queueapi.actions.letter_recount import recount_letters
from queueapi.actions.queues import create_queue
from queueapi.actions.replays import start_replay
from queueapi.actions.tenants import create_tenant
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterBody, DeadLetterGroup, QuarantinedLetter, Replay
from queuecore.deadletter.envelope import PREFIX
from queuecore.deadletter.fitting import send_letter
from queuecore.deadletter.writing import LetterWriter
from queuecore.messages import REPLAY_COUNT, REPLAY_LETTER, TENANT_ID, Record
from queuecore.sending import Addressed
from queuecore.testing.waiting import wait_until
from queuecore.topics import ProviderPartition
from workers.letters import LetterIndexer

HUGE = b"9" * 4000

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def letter(installation):
    """A record of the dead-letter topic with these headers besides the ones that it needs."""

    def make(number: int = 0, **story: bytes) -> Record:
        headers = {f"{PREFIX}{name.replace('_', '.')}": value for name, value in story.items()}
        headers[f"{PREFIX}queue.id"] = str(installation.queue.id).encode()
        return Record("telemetry.dlq", 0, number, 0, None, headers, b"data")

    return make


def index_letters(records: list[Record]) -> int:
    return letter_index.index_letters(records, runtime.provider().reader())


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


def test_what_attempts_ended_with_is_kept_as_far_as_a_row_can_hold_it(letter) -> None:
    told = [[1, -5, "failed", "ValueError", "a\0b\ud800"], [2, 1_700_000_000_123, "timed_out", "E" * 999, "slow"], "no"]
    row = entered(letter(failures=json.dumps(told).encode()))
    assert row.body.failures == [
        {"number": 1, "failed_at_ms": 0, "outcome": "failed", "fault": "ValueError", "message": "a\ufffdb?"},
        {"number": 2, "failed_at_ms": 1_700_000_000_123, "outcome": "timed_out", "fault": "E" * 300, "message": "slow"},
    ]
    assert entered(letter(1)).body.failures is None


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
    assert row.body.headers == {"na\N{REPLACEMENT CHARACTER}me": "AA==", "sur?": ""}


def test_ids_that_are_none_are_left_out(letter) -> None:
    row = entered(with_headers(letter(), {TENANT_ID: b"\xff\0", REPLAY_LETTER: b"no-id"}))
    assert (row.tenant, row.replay_of) == (None, None)


def test_what_cannot_be_entered_is_one_line_and_the_others_go_on(letter, monkeypatch, caplog) -> None:
    make_rows = letter_index.to_rows

    def broken(record, reader):
        rows = make_rows(record, reader)
        if record.offset == 1:
            rows.letter["reason"] = None
        return rows

    monkeypatch.setattr(letter_index, "to_rows", broken)
    assert index_letters([letter(0), letter(1), letter(2)]) == 2
    assert [line.getMessage().split(" and ")[0] for line in caplog.records if line.levelname == "ERROR"] == [
        "telemetry.dlq[0] offset 1 cannot be entered into the index"
    ]
    quarantined = QuarantinedLetter.objects.get()
    assert (quarantined.letter_topic, quarantined.letter_offset) == ("telemetry.dlq", 1)
    assert "reason" in quarantined.error


def test_a_letter_twice_in_one_pack_is_entered_once(letter) -> None:
    assert index_letters([letter(7), letter(7)]) == 1


def test_another_letter_at_a_known_place_is_quarantined(letter) -> None:
    """Its topic was deleted and made anew."""
    first = letter(7)
    assert index_letters([first, letter(8)]) == 2
    another = Record(first.topic, 0, 7, 86_400_000, None, first.headers, b"other")
    assert index_letters([another, letter(8), letter(9)]) == 1
    quarantined = QuarantinedLetter.objects.get()
    assert (quarantined.letter_topic, quarantined.letter_offset) == ("telemetry.dlq", 7)
    assert "the topic was deleted and made anew" in quarantined.error


def test_a_letter_from_before_ids_told_of_its_time_is_known_all_the_same(letter) -> None:
    index_letters([letter(7)])
    DeadLetterBody.objects.all().delete()
    DeadLetter.objects.update(id=uuid4())
    assert index_letters([letter(7)]) == 0
    assert not QuarantinedLetter.objects.exists()


def test_a_letter_that_names_no_known_queue_belongs_to_its_topics(letter, installation) -> None:
    row = entered(with_headers(letter(), {f"{PREFIX}queue.id": str(uuid4()).encode()}))
    assert row.queue == installation.queue


def test_a_letter_of_no_queue_at_all_is_quarantined(installation) -> None:
    assert index_letters([Record("stranger.dlq", 0, 3, 0, None, {}, b"data")]) == 0
    assert "stranger.dlq is no queue's" in QuarantinedLetter.objects.get(letter_topic="stranger.dlq").error


def test_a_tenants_own_queue_says_whose_its_letters_are(installation) -> None:
    owner = create_tenant(SYSTEM, "Owner")
    queue = create_queue(SYSTEM, owner, name="Own", topic="own", handler="log")
    row = entered(Record(queue.letter_topic, 0, 0, 0, None, {}, b"data"))
    assert (row.queue, row.tenant) == (queue, owner)
    other = create_tenant(SYSTEM, "Other")
    row = entered(Record(queue.letter_topic, 0, 1, 0, None, {TENANT_ID: str(other.id).encode()}, b"data"))
    assert (row.queue, row.tenant) == (queue, owner)


def test_letters_of_others_are_entered_with_what_they_tell(installation) -> None:
    headers = {
        "kafka_dlt-original-topic": b"telemetry.2",
        "kafka_dlt-original-offset": (77).to_bytes(8),
        "kafka_dlt-exception-fqcn": b"java.lang.IllegalStateException",
        "kafka_dlt-exception-message": b"sensor 4711 is unknown",
        "customer": b"acme",
    }
    row = entered(Record("telemetry.dlq", 1, 5, 1_700_000_000_000, b"key", headers, b"data"))
    assert (row.origin, row.topic, row.partition, row.offset) == ("spring", "telemetry.2", 1, 77)
    assert (row.exception_class, row.group.exception_message) == (
        "java.lang.IllegalStateException",
        "sensor 4711 is unknown",
    )
    assert row.body.headers == {"customer": "YWNtZQ=="}
    assert row.raw_key is not None
    assert bytes(row.raw_key) == b"key"
    # Nobody said when it failed: that is when the letter was written.
    assert row.failed_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_letters_are_counted_and_grouped_as_they_are_entered(letter, installation) -> None:
    records = [letter(n, fingerprint=b"%d" % (n % 2), failed_at_ms=b"%d" % (1000 * n)) for n in range(6)]
    index_letters([with_headers(record, {TENANT_ID: str(installation.tenant.id).encode()}) for record in records[:3]])
    index_letters(records)
    groups = DeadLetterGroup.objects.order_by("fingerprint")
    assert [(group.letters, group.open_letters) for group in groups] == [(3, 3), (3, 3)]
    assert [(group.first_seen.second, group.last_seen.second) for group in groups] == [(0, 4), (1, 5)]
    assert recount_letters() == []


def test_a_letters_id_is_the_same_whoever_enters_it(letter) -> None:
    first = entered(letter(3)).id
    DeadLetter.objects.all().delete()
    assert entered(letter(3)).id == first


def test_a_replay_that_fails_again_is_told_to_its_letter_and_its_replay(letter) -> None:
    first = entered(letter(0))
    replay = start_replay(SYSTEM, [first.id])
    again = entered(with_headers(letter(1), {REPLAY_LETTER: str(first.id).encode(), REPLAY_COUNT: b"1"}))
    first.refresh_from_db()
    assert (first.state, again.state, again.replay_of) == (LetterState.FAILED_AGAIN, LetterState.OPEN, first)
    assert Replay.objects.get(id=replay.id).failed == 1
    assert again.body.headers == {}
    assert recount_letters() == []


def test_nothing_is_half_entered_when_the_database_goes_away(letter, monkeypatch) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the database is gone")

    with monkeypatch.context() as outage:
        outage.setattr(letter_index, "count_changes", away)
        with pytest.raises(OperationalError):
            index_letters([letter(0), letter(1)])
    assert not DeadLetter.objects.exists()
    assert index_letters([letter(0), letter(1)]) == 2
    assert recount_letters() == []


def test_what_was_quarantined_is_entered_once_it_can_be(letter, installation) -> None:
    stranger = Record("later.dlq", 0, 0, 0, None, {}, b"data")
    assert index_letters([stranger]) == 0
    create_queue(SYSTEM, installation.queue.tenant, name="Later", topic="later", handler="log")
    assert index_letters([stranger]) == 1
    assert not QuarantinedLetter.objects.exists()


def test_two_indexers_at_the_same_time_enter_each_letter_once(letter) -> None:
    records = [letter(number, fingerprint=b"%d" % (number % 3)) for number in range(50)]
    entered_by: list[int] = []
    start = threading.Barrier(2)

    def index() -> None:
        start.wait()
        try:
            entered_by.append(index_letters(records))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=index) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(entered_by) == DeadLetter.objects.count() == 50
    assert not QuarantinedLetter.objects.exists()
    assert recount_letters() == []


# The worker


@pytest.fixture
def indexing(installation):
    """An indexer at work."""
    indexer = LetterIndexer(installation.queue.letter_topic, runtime.provider())
    thread = threading.Thread(target=run_and_close, args=[indexer])
    thread.start()
    yield
    indexer.stop()
    thread.join()


def run_and_close(indexer: LetterIndexer) -> None:
    try:
        indexer.run()
    finally:
        connections.close_all()


def given_up(installation, data: bytes) -> Addressed:
    """A message of the queue's partition 1 as a letter."""
    info = installation.queue.partition_info(1)
    record = Record(info.full_topic_name, 0, 9, 1_700_000_000_000, None, {"customer": b"acme"}, data)
    writer = LetterWriter(str(installation.queue.id), "group", "handler", "worker-1")
    return writer.write(info, record, ValueError("too hot"), reason="retries_exhausted", attempts=4)


def test_letters_in_the_topic_come_into_the_index(installation, indexing) -> None:
    provider = runtime.provider()
    target, letter = given_up(installation, b"data")
    send_letter(provider.producer(), provider.admin(), target, letter, 10)
    row = wait_until(lambda: DeadLetter.objects.select_related("body").first())
    assert (row.partition, row.service, row.stage, row.attempts) == (1, "worker-1", "handle", 4)
    assert bytes(row.body.payload) == b"data"
    group, place = f"dead-letter-index-{row.letter_topic}", ProviderPartition(row.letter_topic, 1)
    wait_until(lambda: provider.admin().committed_offsets({group: [place]})[group].get(place) == 1)


def test_a_payload_too_large_for_the_topic_is_read_from_its_side_store(installation, indexing) -> None:
    provider = runtime.provider()
    target, letter = given_up(installation, b"x" * 1_048_000)
    send_letter(provider.producer(), provider.admin(), target, letter, 10)
    row = wait_until(lambda: DeadLetter.objects.select_related("body").first())
    assert (row.payload_size, row.payload_missing) == (1_048_000, "")
    assert bytes(row.body.payload) == b"x" * 1_048_000


def test_a_payload_that_its_side_store_has_lost_is_said_to_be(letter) -> None:
    row = entered(letter(payload=b'{"nonsense": true}'))
    assert "the payload of the letter telemetry.dlq[0]@0 is not there" in row.payload_missing
    assert (row.payload_size, bytes(row.body.payload)) == (0, b"")
