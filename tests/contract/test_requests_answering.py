"""Answering on every provider: each request that somebody waits for is answered, by one of those who share them."""

import asyncio
import threading

import pytest

from queuecore.errors import (
    RequestFailed,
    RequestTimeout,
    UnknownTenant,
)
from queuecore.messages import EXPIRE_TS, REQUEST_ID, RESPONSE_TOPIC, QueueMessage, encode_millis
from queuecore.requests import Request, ResponseOptions
from queuecore.sending import send_and_wait
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.contract.kafka import KafkaKit
from tests.contract.requests import Gate, LogKit, MemoryKit, RequestKit, Services, error_code

SOON_MS = 300


class Answering(RequestKit):
    def test_what_a_handler_raises_is_the_answer(self, services: Services) -> None:
        errors: dict[bytes, Exception] = {
            b"own": RequestFailed("no such price", error_code="unknown_price"),
            b"ours": UnknownTenant("no tenant acme is known"),
            b"any": ValueError("not a number"),
        }

        def fail(request: Request) -> bytes:
            raise errors[request.data]

        responder = services.responder(fail)
        template = services.requester()
        assert error_code(template, b"own") == "unknown_price"
        assert error_code(template, b"ours") == "unknown_tenant"
        with pytest.raises(RequestFailed, match="ValueError: not a number") as caught:
            template.send(b"any").result(DEADLINE_S)
        assert caught.value.error_code == "handler_failed"
        wait_until(lambda: responder.counts.failed == 3)
        assert (template.counts.failed, template.counts.answered) == (3, 0)

    @pytest.mark.parametrize(("answer", "code"), [(7, "invalid_message"), (bytes(2_000_000), "answer_refused")])
    def test_what_cannot_be_an_answer_is_told(self, services: Services, answer: object, code: str) -> None:
        services.responder(lambda request: answer)  # type: ignore[arg-type, return-value]
        assert error_code(services.requester(), b"") == code

    def test_what_cannot_be_told_is_answered_all_the_same(
        self, services: Services, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Speechless(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        errors = {b"speechless": Speechless(), b"code": RequestFailed("\udc80", error_code="\udc80")}

        def fail(request: Request) -> bytes:
            raise errors[request.data]

        services.responder(fail, ResponseOptions(concurrency=1))
        template = services.requester()
        assert error_code(template, b"speechless") == "handler_failed"
        assert error_code(template, b"code") == "\\udc80"
        assert "cannot be told as text" in caplog.text

    def test_nothing_is_an_answer(self, services: Services) -> None:
        services.responder(lambda request: None)
        assert services.requester().send(b"1").result(DEADLINE_S).data == b""

    def test_a_handler_that_takes_too_long_is_answered_for(self, services: Services) -> None:
        gate = Gate()
        options = ResponseOptions(request_timeout_ms=SOON_MS, concurrency=1, max_overruns=1)
        responder = services.responder(gate, options)
        template = services.requester()
        assert error_code(template, b"1") == "handler_timed_out"
        [request] = gate.begun
        assert request.cancelled
        # Another takes its place.
        future = template.send(b"2")
        wait_until(lambda: len(gate.begun) == 2)
        gate.goes_on.set()
        assert future.result(DEADLINE_S).data == b"2"
        wait_until(lambda: responder.counts.timed_out == 1)

    def test_no_answer_waits_for_a_slow_handler_behind_it(self, services: Services) -> None:
        """Those of quick handlers are sent together, which must not keep one back."""
        gate = Gate()
        services.responder(
            lambda request: gate(request) if request.data == b"slow" else b"", ResponseOptions(concurrency=1)
        )
        template = services.requester()
        *quick, slow = template.send_many([QueueMessage(b"one", data) for data in (*([b"quick"] * 5), b"slow")])
        wait_until(lambda: gate.begun)
        assert [future.result(DEADLINE_S).data for future in quick] == [b""] * 5
        gate.goes_on.set()
        assert slow.result(DEADLINE_S).data == b"slow"

    def test_an_async_handler_that_takes_too_long_is_cancelled(self, services: Services) -> None:
        ended: list[str] = []

        async def wait(request: Request) -> bytes:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            return b""

        services.responder(wait, ResponseOptions(request_timeout_ms=SOON_MS))
        assert error_code(services.requester(), b"1") == "handler_timed_out"
        wait_until(lambda: ended == ["cancelled"])

    def test_a_request_that_has_expired_is_not_begun(self, services: Services) -> None:
        template = services.requester()
        futures = [template.send(b"%d" % number, timeout_ms=SOON_MS) for number in range(5)]
        for future in futures:
            with pytest.raises(RequestTimeout):
                future.result(DEADLINE_S)
        begun: list[bytes] = []

        def note(request: Request) -> bytes:
            begun.append(request.data)
            return request.data

        responder = services.responder(note)
        assert template.send(b"6").result(DEADLINE_S).data == b"6"
        wait_until(lambda: responder.counts.expired == 5)
        assert begun == [b"6"]

    def test_what_is_no_request_is_passed_over(self, services: Services, caplog: pytest.LogCaptureFixture) -> None:
        """A hostile one must not have answers written to topics of others."""
        responder = services.responder()
        template = services.requester()
        producer = services.open_provider().producer()
        whole = {
            REQUEST_ID: bytes(16),
            RESPONSE_TOPIC: template.response_topic.encode(),
            EXPIRE_TS: encode_millis(2**60),
        }
        bad = [
            {},
            *({**whole, name: b"short"} for name in (REQUEST_ID, EXPIRE_TS)),
            {**whole, RESPONSE_TOPIC: b"tb_core.0"},
            {**whole, RESPONSE_TOPIC: services.topics.responses.name.encode() + b"."},
            {**whole, RESPONSE_TOPIC: b"\xff\xfe"},
        ]
        for headers in bad:
            send_and_wait(producer, services.topics.requests[0], QueueMessage(None, b"", headers), DEADLINE_S)
        assert template.send(b"1").result(DEADLINE_S).data == b"1"
        wait_until(lambda: responder.counts.malformed == len(bad))
        assert "is no request, and passed over" in caplog.text
        wait_until(lambda: services.committed() == len(bad) + 1)

    def test_an_answer_that_nobody_can_get_holds_up_nothing(self, services: Services) -> None:
        responder = services.responder()
        template = services.requester()
        gone = f"{services.topics.responses.name}.gone"
        headers = {REQUEST_ID: bytes(16), RESPONSE_TOPIC: gone.encode(), EXPIRE_TS: encode_millis(2**60)}
        producer = services.open_provider().producer()
        send_and_wait(producer, services.topics.requests[0], QueueMessage(None, b"", headers), DEADLINE_S)
        assert template.send(b"1", to=services.topics.requests[0]).result(DEADLINE_S).data == b"1"
        wait_until(lambda: responder.counts.undeliverable == 1)
        wait_until(lambda: services.committed() == 2)

    def test_a_slow_one_holds_up_nobody_behind_it(self, services: Services) -> None:
        gate = Gate()

        def answer(request: Request) -> bytes:
            return gate(request) if request.data == b"slow" else request.data

        services.responder(answer, ResponseOptions(concurrency=2))
        template = services.requester()
        slow = template.send(b"slow", to=services.topics.requests[0])
        wait_until(lambda: gate.begun)
        for number in range(50):
            assert template.send(b"%d" % number, to=services.topics.requests[0]).result(DEADLINE_S)
        assert not slow.done()
        assert services.committed() == 0, "a crash now must bring the slow one again"
        gate.goes_on.set()
        slow.result(DEADLINE_S)
        wait_until(lambda: services.committed() == 51)

    def test_no_more_is_read_than_may_be_pending(self, services: Services) -> None:
        gate = Gate()
        options = ResponseOptions(max_pending_requests=6, max_poll_requests=3, concurrency=2)
        responder = services.responder(gate, options)
        template = services.requester()
        futures = [template.send(b"%d" % number) for number in range(30)]
        wait_until(lambda: responder.counts.pending > 3)
        assert responder.counts.pending <= 6
        gate.goes_on.set()
        for future in futures:
            future.result(DEADLINE_S)
        wait_until(lambda: services.committed() == 30)

    def test_responders_share_the_requests(self, services: Services) -> None:
        responders = [services.responder() for _ in range(2)]
        template = services.requester()
        wait_until(lambda: all(len(one.partitions) == 2 for one in responders))
        for number in range(40):
            template.send(b"%d" % number).result(DEADLINE_S)
        wait_until(lambda: sum(one.counts.answered for one in responders) == 40)
        assert all(one.counts.answered for one in responders)

    def test_a_responder_that_leaves_answers_what_it_has_begun(self, services: Services) -> None:
        gate = Gate()
        leaving = services.responder(gate, ResponseOptions(concurrency=4))
        template = services.requester()
        futures = [template.send(b"%d" % number) for number in range(4)]
        wait_until(lambda: len(gate.begun) == 4)
        stopping = threading.Thread(target=leaving.stop)
        stopping.start()
        gate.goes_on.set()
        for future in futures:
            future.result(DEADLINE_S)
        stopping.join(DEADLINE_S)
        assert not leaving.is_running
        assert services.committed() == 4
        services.responder()
        assert template.send(b"5").result(DEADLINE_S).data == b"5"

    def test_what_a_responder_has_not_answered_another_does(self, services: Services) -> None:
        gate = Gate()
        stuck = services.responder(gate, ResponseOptions(concurrency=1))
        template = services.requester()
        futures = [template.send(b"%d" % number) for number in range(8)]
        wait_until(lambda: gate.begun)
        assert not stuck.stop(0)
        services.responder()
        assert [future.result(DEADLINE_S).data for future in futures] == [b"%d" % number for number in range(8)]
        gate.goes_on.set()

    def test_what_was_begun_by_a_task_another_does(self, services: Services) -> None:
        async def wait(request: Request) -> bytes:
            await asyncio.Event().wait()
            return request.data

        stuck = services.responder(wait)
        template = services.requester()
        future = template.send(b"1")
        wait_until(lambda: stuck.counts.pending)
        assert not stuck.stop(0)
        services.responder()
        assert future.result(DEADLINE_S).data == b"1"


class TestMemory(Answering, MemoryKit):
    """In one process."""


class TestLog(Answering, LogKit):
    """In files."""


class TestKafka(Answering, KafkaKit):
    """On a real broker."""
