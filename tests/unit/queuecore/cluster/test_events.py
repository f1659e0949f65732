"""Events of a cluster: heard in order, each kind for itself, and the same after they were sent."""

import threading
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecore.cluster.events import (
    EVENT_KINDS,
    EVENT_TYPES,
    ClusterTopologyChangeEvent,
    Event,
    EventBus,
    PartitionChangeEvent,
    ServiceListChangedEvent,
    decode_event,
    encode_event,
    event_kind,
)
from queuecore.cluster.kinds import NOTIFICATION, kind_of, notification
from queuecore.errors import UndecodableMessage
from queuecore.messages import QueueMessage, Record
from queuecore.routing import QueueKey
from queuecore.testing.waiting import DEADLINE_S
from queuecore.topics import SYSTEM_TENANT, ServiceType


def services(sequence: int) -> ServiceListChangedEvent:
    return ServiceListChangedEvent(sequence, "me", ("other",))


def stored(message: QueueMessage) -> Record:
    return Record("tb_core.notifications.me", 0, 7, 1, message.key, message.headers, message.data)


class TestBus:
    def test_listeners_hear_their_kind_alone_and_in_their_order(self) -> None:
        bus, heard = EventBus(), []
        bus.listen(ServiceListChangedEvent, lambda event: heard.append(("first", event)))
        bus.listen(ServiceListChangedEvent, lambda event: heard.append(("second", event)))
        bus.listen(PartitionChangeEvent, lambda event: heard.append(("third", event)))
        assert bus.publish(services(1))
        assert heard == [("first", services(1)), ("second", services(1))]

    def test_late_ones_are_ignored_and_counted_for_each_kind(self) -> None:
        bus, heard = EventBus(), []
        bus.listen(ServiceListChangedEvent, heard.append)
        bus.listen(ClusterTopologyChangeEvent, heard.append)
        assert bus.last_sequence(ServiceListChangedEvent) is None
        assert [bus.publish(services(number)) for number in (5, 5, 4, 6)] == [True, False, False, True]
        assert bus.publish(ClusterTopologyChangeEvent(2))
        assert heard == [services(5), services(6), ClusterTopologyChangeEvent(2)]
        assert (bus.late(ServiceListChangedEvent), bus.late(ClusterTopologyChangeEvent)) == (2, 0)
        assert [bus.last_sequence(kind) for kind in EVENT_TYPES] == [2, None, 6]

    def test_one_that_raises_keeps_nobody_from_hearing(self, caplog: pytest.LogCaptureFixture) -> None:
        def fail(event: Event) -> None:
            raise RuntimeError("no ears")

        bus, heard = EventBus("events of me"), []
        bus.listen(ServiceListChangedEvent, fail)
        bus.listen(ServiceListChangedEvent, heard.append)
        assert bus.publish(services(1))
        assert bus.publish(services(2))
        assert (heard, bus.failures) == ([services(1), services(2)], 2)
        assert "events of me" in caplog.text
        assert "no ears" in caplog.text

    def test_who_has_closed_hears_no_more(self) -> None:
        bus, heard = EventBus(), []
        with bus.listen(ServiceListChangedEvent, heard.append) as listening:
            bus.publish(services(1))
        listening.close()
        bus.publish(services(2))
        assert heard == [services(1)]

    def test_a_listener_may_publish_and_the_others_still_hear_in_order(self) -> None:
        bus, heard = EventBus(), []

        def answer(event: ServiceListChangedEvent) -> None:
            if event.sequence == 1:
                bus.publish(services(2))

        bus.listen(ServiceListChangedEvent, answer)
        bus.listen(ServiceListChangedEvent, heard.append)
        bus.publish(services(1))
        assert heard == [services(1), services(2)]

    def test_an_end_by_force_leaves_nobody_silent(self) -> None:
        bus, heard = EventBus(), []

        def leave(event: ServiceListChangedEvent) -> None:
            heard.append(event)
            if event.sequence == 1:
                raise SystemExit

        bus.listen(ServiceListChangedEvent, leave)
        with pytest.raises(SystemExit):
            bus.publish(services(1))
        bus.publish(services(2))
        assert heard == [services(1), services(2)]

    def test_from_many_threads_each_hears_the_same_in_order(self) -> None:
        bus, heard = EventBus(), []
        bus.listen(ServiceListChangedEvent, lambda event: heard.append(event.sequence))
        together = threading.Barrier(4)

        def publish(first: int) -> None:
            together.wait(DEADLINE_S)
            for number in range(first, 2_000, 4):
                bus.publish(services(number))

        threads = [threading.Thread(target=publish, args=[first]) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert heard == sorted(set(heard))
        assert len(heard) + bus.late(ServiceListChangedEvent) == 2_000
        assert heard[-1] == 1_999


names = st.text(min_size=1, max_size=20)
sequences = st.integers(1, 2**62)
keys = st.builds(QueueKey, st.sampled_from(ServiceType), names, st.one_of(st.just(SYSTEM_TENANT), st.uuids()))
events = st.one_of(
    st.builds(ClusterTopologyChangeEvent, sequences, st.frozensets(keys)),
    st.builds(PartitionChangeEvent, sequences, names, st.dictionaries(names, sequences), st.frozensets(names)),
    st.builds(ServiceListChangedEvent, sequences, names, st.lists(names).map(tuple)),
)


class TestEncoding:
    @given(events)
    def test_an_event_that_was_sent_is_the_same(self, event: Event) -> None:
        record = stored(encode_event(event))
        assert decode_event(record) == event
        assert kind_of(record) == event_kind(type(event))

    def test_the_header_says_what_it_is(self) -> None:
        assert EVENT_KINDS == ("cluster.topology_change", "cluster.partition_change", "cluster.service_list_changed")
        assert encode_event(PartitionChangeEvent(1, "me")).headers == {NOTIFICATION: b"cluster.partition_change"}

    def test_other_kinds_are_left_to_others(self) -> None:
        assert decode_event(stored(notification("rpc.response", b"7"))) is None
        assert decode_event(stored(QueueMessage(None, b"7"))) is None

    @pytest.mark.parametrize("kind", EVENT_KINDS)
    def test_a_payload_that_is_none_is_refused(self, kind: str) -> None:
        with pytest.raises(UndecodableMessage):
            decode_event(stored(notification(kind, b"\xff\xff")))

    def test_a_queue_that_cannot_be_is_refused(self) -> None:
        event = ClusterTopologyChangeEvent(1, frozenset({QueueKey(ServiceType.TB_CORE, "Main", uuid4())}))
        broken = encode_event(event)._replace(data=encode_event(event).data.replace(b"TB_CORE", b"TB_NONE"))
        with pytest.raises(UndecodableMessage, match=r"cluster\.topology_change.*TB_NONE"):
            decode_event(stored(broken))
