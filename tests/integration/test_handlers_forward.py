"""`forward`: messages that go on to another queue, once, in order, and never in a circle for ever."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore import Queues, Record, open_queues
from queuecore.consuming.handlers import bind, check_handler
from queuecore.errors import ConfigurationError
from queuecore.messages import PRODUCER_ID, REPLAY_LETTER, TENANT_ID
from workers.handlers.forward import FORWARDED, MAX_FORWARDS

ENTITY = uuid4()


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[Queues]:
    with open_queues("log", folder=tmp_path) as opened:
        for name in ("first", "second"):
            opened.create(name, partitions=2)
        yield opened


def forward(queues: Queues, source: str = "first", target: str = "second", **options: object) -> None:
    """Until everything that is there now has gone on."""
    handler = bind("forward", {"queue": target, **options})
    with queues.subscribe(source, handler, group="forwarding", delivery="exactly_once") as forwarding:
        forwarding.drain()


def messages(queues: Queues, queue: str) -> list[Record]:
    found: list[Record] = []
    with queues.subscribe(queue, lambda record, context: found.append(record), group=f"readers-{uuid4()}") as reading:
        reading.drain()
    return found


def test_key_payload_and_headers_go_on(queues: Queues) -> None:
    queues.publish("first", ENTITY, b"reading", {"channel": b"web", TENANT_ID: b"t"}).result()
    forward(queues)
    (record,) = messages(queues, "second")
    assert (record.key, record.data) == (ENTITY, b"reading")
    assert (record.headers["channel"], record.headers[TENANT_ID]) == (b"web", b"t")
    assert PRODUCER_ID in record.headers


def test_headers_may_stay_behind_but_for_the_tenant(queues: Queues) -> None:
    queues.publish("first", ENTITY, b"reading", {"channel": b"web", TENANT_ID: b"t"}).result()
    forward(queues, keep_headers=False)
    (record,) = messages(queues, "second")
    assert record.headers[TENANT_ID] == b"t"
    assert "channel" not in record.headers


def test_a_replay_ends_here(queues: Queues) -> None:
    """The letter's outcome is that of the queue it was sent to again, not of those behind."""
    queues.publish("first", ENTITY, b"reading", {REPLAY_LETTER: str(uuid4()).encode()}).result()
    forward(queues)
    (record,) = messages(queues, "second")
    assert REPLAY_LETTER not in record.headers


def test_each_goes_on_once_and_an_entity_s_stay_in_order(queues: Queues) -> None:
    for number in range(200):
        queues.publish("first", f"device-{number % 5}", b"%d" % number)
    queues.flush()
    forward(queues)
    forward(queues)
    found = [int(record.data) for record in messages(queues, "second")]
    assert sorted(found) == list(range(200))
    for device in range(5):
        numbers = [number for number in found if number % 5 == device]
        assert numbers == sorted(numbers)


def test_a_queue_cannot_forward_to_itself(queues: Queues) -> None:
    check_handler("forward", {"queue": "second"}, "first")
    for name in ("first", "FIRST"):
        with pytest.raises(ConfigurationError, match="to itself, without end; name another"):
            check_handler("forward", {"queue": name}, "first")
    with pytest.raises(ConfigurationError, match="'queue' is empty"):
        check_handler("forward", {"queue": ""})


def test_a_circle_ends_as_a_dead_letter(queues: Queues) -> None:
    queues.publish("first", ENTITY, b"round and round").result()
    for _ in range(MAX_FORWARDS // 2):
        forward(queues)
        forward(queues, "second", "first")
    assert int(messages(queues, "first")[-1].headers[FORWARDED]) == MAX_FORWARDS
    forward(queues)
    (letter,) = queues.dead_letters("first")
    assert (letter.story.reason, letter.story.attempts) == ("given_up", 1)
    assert "in a circle" in letter.story.exception_message


def test_a_target_that_is_not_there(queues: Queues) -> None:
    queues.publish("first", ENTITY, b"reading").result()
    forward(queues, target="third")
    (letter,) = queues.dead_letters("first")
    assert letter.story.exception_class == "queuecore.errors.UnknownQueue"
