"""Asking on every provider: what was asked ends once, with its own answer or with the reason why not."""

import asyncio
import threading

import pytest

from queuecore.errors import (
    Displaced,
    QueueError,
    RequestCancelled,
    RequestFailed,
    RequestsStopped,
    RequestTimeout,
    TooManyRequests,
)
from queuecore.messages import QueueMessage
from queuecore.proto.cluster_pb2 import QueueRef
from queuecore.providers.options import ProducerOptions
from queuecore.requests import Request, RequestOptions, RequestTemplate
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.contract.kafka import KafkaKit
from tests.contract.requests import Gate, LogKit, MemoryKit, RequestKit, Services, error_code

SOON_MS = 300


class Asking(RequestKit):
    def test_each_gets_its_own_answer(self, services: Services) -> None:
        services.responder()
        template = services.requester()
        futures = [template.send(b"%d" % number) for number in range(500)]
        assert [future.result(DEADLINE_S).data for future in futures] == [b"%d" % number for number in range(500)]
        counts = template.counts
        assert (counts.sent, counts.answered, counts.pending, sum(counts.lag_buckets)) == (500, 500, 0, 500)

    def test_each_of_many_gets_its_own_answer(self, services: Services) -> None:
        services.responder()
        template = services.requester()
        asked = [b"%d" % number for number in range(500)]
        futures = template.send_many([QueueMessage(b"acme", data) if len(data) < 3 else data for data in asked])
        assert [future.result(DEADLINE_S).data for future in futures] == asked
        assert (template.counts.sent, template.counts.answered, template.counts.pending) == (500, 500, 0)

    def test_of_many_those_without_room_are_refused_at_once(self, services: Services) -> None:
        gate = Gate()
        services.responder(gate)
        template = services.requester(options=RequestOptions(max_pending_requests=3))
        futures = template.send_many([b"%d" % number for number in range(5)])
        assert [type(future.exception(0)) for future in futures[3:]] == [TooManyRequests] * 2
        gate.goes_on.set()
        assert [future.result(DEADLINE_S).data for future in futures[:3]] == [b"0", b"1", b"2"]
        assert template.counts.refused == 2

    def test_of_many_a_key_that_cannot_be_leaves_none_pending(self, services: Services) -> None:
        template = services.requester()
        with pytest.raises((TypeError, AttributeError, QueueError)):
            template.send_many([b"1", QueueMessage(7, b"2")])  # type: ignore[arg-type]
        assert (template.counts.pending, template.counts.sent) == (0, 0)

    def test_of_many_none_is_sent_before_the_start_or_after_the_end(self, services: Services) -> None:
        template = services.requester()
        template.stop()
        assert [type(one.exception(0)) for one in template.send_many([b"1", b"2"])] == [RequestsStopped] * 2

    def test_answers_are_awaited(self, services: Services) -> None:
        services.responder()
        template = services.requester()

        async def ask() -> list[bytes]:
            records = await asyncio.gather(*(_awaited(template, b"%d" % number) for number in range(100)))
            return [record.data for record in records]

        assert asyncio.run(ask()) == [b"%d" % number for number in range(100)]

    def test_handlers_may_be_async(self, services: Services) -> None:
        async def answer(request: Request) -> bytes:
            await asyncio.sleep(0)
            if request.data == b"none":
                raise RequestFailed("there is none", error_code="unknown_price")
            return request.data * 2

        services.responder(answer)
        template = services.requester()
        assert template.send(b"7").result(DEADLINE_S).data == b"77"
        assert error_code(template, b"none") == "unknown_price"

    def test_instances_have_topics_of_their_own(self, services: Services) -> None:
        services.responder()
        one, other = services.requester("shop-1"), services.requester("shop-2")
        assert one.response_topic == f"{services.topics.responses.name}.shop-1"
        for number in range(20):
            assert one.send(b"1").result(DEADLINE_S).topic == one.response_topic
            assert other.send(b"2").result(DEADLINE_S).data == b"2", number
        assert (one.counts.orphans, other.counts.orphans) == (0, 0)

    def test_messages_of_a_key_go_to_one_partition(self, services: Services) -> None:
        services.responder(lambda request: b"%d" % request.record.partition)
        template = services.requester()
        places = {template.send(QueueMessage(b"acme", b"")).result(DEADLINE_S).data for _ in range(8)}
        assert len(places) == 1
        spread = {template.send(b"").result(DEADLINE_S).data for _ in range(8)}
        assert spread == {b"0", b"1", b"2", b"3"}
        chosen = services.topics.requests[3]
        assert template.send(b"", to=chosen).result(DEADLINE_S).data == b"3"

    def test_headers_and_payloads_are_kept(self, services: Services) -> None:
        def answer(request: Request) -> QueueMessage:
            assert (request.key, request.headers["tenantId"]) == (b"key", b"acme")
            return QueueMessage(None, QueueRef.FromString(request.data).queue.encode(), {"currency": b"EUR"})

        services.responder(answer)
        template = services.requester()
        asked = QueueMessage(b"key", QueueRef(queue="Main").SerializeToString(), {"tenantId": b"acme"})
        found = template.send(asked).result(DEADLINE_S)
        assert (found.data, found.headers["currency"]) == (b"Main", b"EUR")

    def test_a_message_of_protocol_buffers_is_asked_and_answered_as_it_is(self, services: Services) -> None:
        services.responder(lambda request: QueueRef(queue=QueueRef.FromString(request.data).queue.upper()))
        answer = services.requester().send(QueueRef(queue="main")).result(DEADLINE_S)
        assert QueueRef.FromString(answer.data).queue == "MAIN"

    def test_nobody_answers_in_time(self, services: Services) -> None:
        template = services.requester()
        future = template.send(b"1", timeout_ms=SOON_MS)
        with pytest.raises(RequestTimeout, match="within 300 ms; whether it was worked on is not known"):
            future.result(DEADLINE_S)
        counts = template.counts
        assert (counts.timed_out, counts.pending, counts.answered) == (1, 0, 0)

    def test_an_answer_that_comes_late_is_counted_and_ignored(self, services: Services) -> None:
        gate = Gate()
        services.responder(gate)
        template = services.requester()
        cancelled = template.send(b"1")
        wait_until(lambda: gate.begun)
        assert cancelled.cancel()
        with pytest.raises(RequestTimeout):
            template.send(b"2", timeout_ms=SOON_MS).result(DEADLINE_S)
        gate.goes_on.set()
        wait_until(lambda: template.counts.late >= 1)
        with pytest.raises(RequestCancelled):
            cancelled.result(0)
        assert not cancelled.cancel()
        counts = template.counts
        assert (counts.cancelled, counts.timed_out, counts.answered) == (1, 1, 0)

    def test_answers_to_an_earlier_life_are_orphans(self, services: Services) -> None:
        gate = Gate()
        services.responder(gate)
        first = services.requester()
        future = first.send(b"1")
        wait_until(lambda: gate.begun)
        first.stop()
        with pytest.raises(RequestsStopped):
            future.result(0)
        second = services.requester()
        gate.goes_on.set()
        wait_until(lambda: second.counts.orphans == 1)
        assert second.send(b"2").result(DEADLINE_S).data == b"2"

    def test_one_more_than_may_wait_is_refused_at_once(self, services: Services) -> None:
        gate = Gate()
        services.responder(gate)
        template = services.requester(options=RequestOptions(max_pending_requests=3))
        futures = [template.send(b"%d" % number) for number in range(3)]
        refused = template.send(b"4")
        assert refused.done()
        with pytest.raises(TooManyRequests, match=r"3 requests to .* wait for their answers"):
            refused.result(0)
        gate.goes_on.set()
        for future in futures:
            future.result(DEADLINE_S)
        assert template.send(b"5").result(DEADLINE_S).data == b"5"
        assert (template.counts.refused, template.counts.sent) == (1, 4)

    def test_what_cannot_be_stored_fails_with_the_reason(self, services: Services) -> None:
        services.responder()
        template = services.requester()
        with pytest.raises(QueueError) as caught:
            template.send(bytes(ProducerOptions().max_request_size + 1)).result(DEADLINE_S)
        assert caught.value.code == "payload_too_large"
        assert (template.counts.not_stored, template.counts.pending) == (1, 0)

    def test_stopping_ends_what_is_pending_and_refuses_the_rest(self, services: Services) -> None:
        gate = Gate()
        services.responder(gate)
        template = services.requester()
        futures = [template.send(b"%d" % number) for number in range(10)]
        template.stop()
        for future in [*futures, template.send(b"late")]:
            with pytest.raises(RequestsStopped):
                future.result(0)
        assert (template.counts.pending, template.counts.cancelled) == (0, 10)
        gate.goes_on.set()

    def test_stopping_may_wait_for_answers(self, services: Services) -> None:
        gate = Gate()
        services.responder(gate)
        template = services.requester()
        future = template.send(b"1")
        wait_until(lambda: gate.begun)
        gate.goes_on.set()
        template.stop(DEADLINE_S)
        assert future.result(0).data == b"1"

    def test_stopping_waits_no_longer_than_anything_is_pending(self, services: Services) -> None:
        template = services.requester()
        future = template.send(b"1", timeout_ms=SOON_MS)
        stopping = threading.Thread(target=template.stop, args=[10 * DEADLINE_S])
        stopping.start()
        stopping.join(DEADLINE_S)
        assert not stopping.is_alive()
        with pytest.raises(RequestTimeout):
            future.result(0)

    def test_who_comes_with_the_same_id_has_the_answers(
        self, services: Services, caplog: pytest.LogCaptureFixture
    ) -> None:
        gate = Gate()
        services.responder(gate)
        first = services.requester()
        pending = first.send(b"1")
        wait_until(lambda: gate.begun)
        # It reads its topic, and so has a place to lose.
        wait_until(lambda: services.open_provider().admin().groups()[first.response_topic].members)
        second = services.requester()
        with pytest.raises(Displaced):
            pending.result(DEADLINE_S)
        assert isinstance(first.error, Displaced)
        with pytest.raises(Displaced):
            first.send(b"2").result(0)
        gate.goes_on.set()
        assert second.send(b"3").result(DEADLINE_S).data == b"3"
        assert "another instance has the id" in caplog.text

    def test_one_whose_response_topic_was_removed_comes_back(self, services: Services) -> None:
        template = services.requester()
        template.stop()
        admin = services.open_provider().admin()
        assert template.response_topic in admin.topics()
        admin.delete_topics([template.response_topic])
        services.responder()
        again = services.requester()
        assert again.send(b"1").result(DEADLINE_S).data == b"1"

    def test_a_response_topic_that_vanishes_is_made_again(self, services: Services) -> None:
        services.responder()
        template = services.requester()
        template.send(b"1").result(DEADLINE_S)
        services.open_provider().admin().delete_topics([template.response_topic])

        def is_answered() -> bool:
            return template.send(b"2", timeout_ms=2_000).exception(DEADLINE_S) is None

        wait_until(is_answered)


async def _awaited(template: RequestTemplate, data: bytes):
    return await template.send(data)


class TestMemory(Asking, MemoryKit):
    """In one process."""


class TestLog(Asking, LogKit):
    """In files."""


class TestKafka(Asking, KafkaKit):
    """On a real broker."""
