"""Notifications on every provider: who is told hears it, and nobody else."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from queuecore.catalogue import edge_specs, service_specs
from queuecore.cluster.events import EventBus, ServiceListChangedEvent, encode_event
from queuecore.cluster.notifications import (
    NOTIFICATION,
    InboxCounts,
    NotificationInbox,
    Notifier,
    inbox_group,
    notification,
    remove_abandoned_topics,
)
from queuecore.cluster.services import ServiceInfo, by_id
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import UnknownService, UnknownTopic
from queuecore.messages import PRODUCER_ID, QueueMessage, Record
from queuecore.providers.base import Provider
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.providers.options import ConsumerOptions
from queuecore.testing.contract import OpenProvider, opened
from queuecore.testing.contract.kit import ContractKit, new_name
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ServiceType
from tests.contract.kafka import KafkaKit

CORE, ENGINE, TRANSPORT = ServiceType.TB_CORE, ServiceType.TB_RULE_ENGINE, ServiceType.TB_TRANSPORT
HOUR_S = 3600.0


class Node:
    """An instance: its inbox, its way to tell others, and what it has heard."""

    def __init__(
        self, provider: Provider, service: ServiceInfo, cluster: Mapping[str, ServiceInfo], settings: QueueSettings
    ) -> None:
        self.provider = provider
        self.service = service
        self.settings = settings
        self.heard: list[bytes] = []
        self.inbox = NotificationInbox(provider, service, settings)
        self.inbox.listen_to_all(lambda record: self.heard.append(record.data))
        self.notifier = Notifier(provider.producer(), lambda: cluster, settings, producer_id=service.service_id)

    def tell(self, service_id: str, data: bytes, service_type: ServiceType | None = None) -> str:
        """Which topic it was stored in."""
        return self.notifier.notify(service_id, notification("test", data), service_type).result(DEADLINE_S).topic

    def wait_for(self, *data: bytes) -> None:
        wait_until(lambda: len(self.heard) >= len(data))
        assert self.heard == list(data)

    def committed(self) -> int:
        """How many notifications its group is done with."""
        places = [info.place for info in self.inbox._infos]
        found = self.provider.admin().committed_offsets({self.inbox.group: places})
        return sum(found[self.inbox.group].values())

    def members(self) -> list[str]:
        group = self.provider.admin().groups().get(self.inbox.group)
        return [] if group is None else [one for one, held in group.members.items() if held]


class Cluster:
    """Makes nodes, and stops them at the end."""

    def __init__(self, open_provider: OpenProvider, stack: ExitStack) -> None:
        self.services: dict[str, ServiceInfo] = {}
        self.settings = QueueSettings(prefix=new_name())
        self._open_provider = open_provider
        self._stack = stack

    def node(
        self, service_id: str, *types: ServiceType, start: bool = True, consuming: ConsumerOptions | None = None
    ) -> Node:
        service = ServiceInfo(service_id, types or (CORE,))
        self.services[service_id] = service
        provider = self._open_provider() if consuming is None else self._open_provider(consuming=consuming)
        node = Node(provider, service, self.services, self.settings)
        self._stack.callback(node.inbox.stop)
        if start:
            node.inbox.start()
        return node


class Notifications(ContractKit):
    @pytest.fixture
    def cluster(self, open_provider: OpenProvider) -> Iterator[Cluster]:
        with ExitStack() as stack:
            yield Cluster(open_provider, stack)

    def test_each_hears_what_it_is_told_and_nothing_else(self, cluster: Cluster) -> None:
        nodes = [cluster.node("core-1"), cluster.node("core-2"), cluster.node("core-10")]
        for sender in nodes:
            for receiver in nodes:
                sender.tell(receiver.service.service_id, b"for " + receiver.service.service_id.encode())
        for node in nodes:
            node.wait_for(*3 * [b"for " + node.service.service_id.encode()])

    def test_one_consumer_reads_all_topics_of_an_instance(self, cluster: Cluster) -> None:
        node, prefix = cluster.node("all", CORE, ENGINE, TRANSPORT), cluster.settings.prefix
        wait_until(lambda: node.inbox.is_reading)
        assert node.tell("all", b"0") == f"{prefix}.tb_core.notifications.all"
        assert node.tell("all", b"1", ENGINE) == f"{prefix}.tb_rule_engine.notifications.all"
        assert node.tell("all", b"2", TRANSPORT) == f"{prefix}.tb_transport.notifications.all"
        wait_until(lambda: len(node.heard) == 3)
        assert sorted(node.heard) == [b"0", b"1", b"2"]
        assert node.inbox.group == f"{prefix}.tb-core-notifications-node-all"
        assert len(node.members()) == 1

    def test_listeners_hear_their_kind_on_one_thread(self, cluster: Cluster) -> None:
        node = cluster.node("core-1", start=False)
        heard: list[tuple[str, bytes]] = []
        threads: set[int] = set()

        def hear(record: Record) -> None:
            threads.add(threading.get_ident())
            heard.append((record.headers[NOTIFICATION].decode(), record.data))
            assert record.headers[PRODUCER_ID] == b"core-1"

        node.inbox.listen("rpc.response", hear)
        closed = node.inbox.listen("cache", hear)
        closed.close()
        node.inbox.start()
        for kind in ("rpc.response", "cache", "rpc.response"):
            node.notifier.notify("core-1", notification(kind, b"1")).result(DEADLINE_S)
        node.notifier.notify("core-1", QueueMessage(None, b"says nothing")).result(DEADLINE_S)
        node.wait_for(b"1", b"1", b"1", b"says nothing")
        assert heard == [("rpc.response", b"1")] * 2
        assert len(threads) == 1
        assert threading.get_ident() not in threads

    def test_one_that_raises_stops_neither_the_others_nor_the_inbox(
        self, cluster: Cluster, caplog: pytest.LogCaptureFixture
    ) -> None:
        node = cluster.node("core-1", start=False)
        late: list[bytes] = []

        def fail(record: Record) -> None:
            raise RuntimeError("no ears")

        node.inbox.listen("test", fail)
        node.inbox.listen("test", lambda record: late.append(record.data))
        node.inbox.start()
        node.tell("core-1", b"1")
        node.tell("core-1", b"2")
        wait_until(lambda: node.committed() == 2)
        assert (node.heard, late) == ([b"1", b"2"], [b"1", b"2"])
        assert node.inbox.counts == InboxCounts(delivered=2, unheard=0, failures=2)
        assert "no ears" in caplog.text

    def test_what_nobody_listens_for_is_counted(self, cluster: Cluster) -> None:
        sender, node = cluster.node("core-1"), cluster.node("core-2", start=False)
        inbox = NotificationInbox(node.provider, node.service, cluster.settings)
        with inbox:
            sender.tell("core-2", b"1")
            wait_until(lambda: inbox.counts == InboxCounts(delivered=1, unheard=1))

    def test_events_that_others_send_are_published(self, cluster: Cluster) -> None:
        node, bus, heard = cluster.node("core-1"), EventBus(), []
        bus.listen(ServiceListChangedEvent, heard.append)
        node.inbox.forward_events(bus)
        events = [ServiceListChangedEvent(number, "core-1", ("core-2",)) for number in (3, 2, 4)]
        for event in events:
            node.notifier.notify("core-1", encode_event(event)).result(DEADLINE_S)
        wait_until(lambda: len(heard) == 2)
        assert heard == [events[0], events[2]]
        assert bus.late(ServiceListChangedEvent) == 1

    def test_an_instance_that_has_joined_gets_what_is_sent_before_it_listens(self, cluster: Cluster) -> None:
        node = cluster.node("core-1", start=False, consuming=ConsumerOptions(auto_offset_reset="latest"))
        node.inbox.join()
        node.tell("core-1", b"early")
        node.inbox.start()
        node.wait_for(b"early")

    def test_a_new_instance_hears_nothing_from_before_it_joined(self, cluster: Cluster) -> None:
        node = cluster.node("core-1", start=False)
        node.provider.admin().create_topics(service_specs(cluster.settings, CORE, "core-1"))
        node.tell("core-1", b"old")
        node.inbox.start()
        node.tell("core-1", b"new")
        node.wait_for(b"new")

    def test_a_restarted_instance_goes_on_where_it_was(self, cluster: Cluster) -> None:
        first = cluster.node("core-1")
        first.tell("core-1", b"1")
        first.wait_for(b"1")
        assert first.inbox.stop()
        first.tell("core-1", b"2")
        second = cluster.node("core-1")
        second.wait_for(b"2")
        assert first.heard == [b"1"]

    def test_an_inbox_can_be_started_again(self, cluster: Cluster) -> None:
        node = cluster.node("core-1")
        node.tell("core-1", b"1")
        node.wait_for(b"1")
        assert node.inbox.stop()
        node.inbox.start()
        node.inbox.start()
        node.tell("core-1", b"2")
        node.wait_for(b"1", b"2")

    def test_a_listener_may_stop_the_inbox(self, cluster: Cluster) -> None:
        node = cluster.node("core-1", start=False)
        stopped: list[bool] = []
        node.inbox.listen("test", lambda record: stopped.append(node.inbox.stop()))
        node.inbox.start()
        node.tell("core-1", b"stop")
        wait_until(lambda: node.inbox._consumption is not None and not node.inbox._consumption.is_running)
        assert (stopped, node.inbox.error, node.committed()) == ([True], None, 1)

    @pytest.mark.parametrize("types", [(CORE,), (CORE, ENGINE)])
    def test_a_successor_with_the_same_id_displaces_it(
        self, cluster: Cluster, types: tuple[ServiceType, ...], caplog: pytest.LogCaptureFixture
    ) -> None:
        zombie = cluster.node("core-1", *types)
        zombie.tell("core-1", b"1")
        zombie.wait_for(b"1")
        wait_until(lambda: zombie.committed() == 1)
        successor = cluster.node("core-1", *types)
        wait_until(lambda: successor.inbox.is_reading and not zombie.inbox.is_reading)
        zombie.tell("core-1", b"2")
        successor.wait_for(b"2")
        assert len(successor.members()) == 1
        assert zombie.heard == [b"1"]
        wait_until(lambda: successor.committed() == 2)
        successor.inbox.stop()
        wait_until(lambda: zombie.inbox.is_reading)
        zombie.tell("core-1", b"3")
        zombie.wait_for(b"1", b"3")

    def test_nobody_of_that_id(self, cluster: Cluster) -> None:
        node = cluster.node("rule-engine-1", ENGINE, start=False)
        with pytest.raises(UnknownService, match=r"no service 'rule-engine-2'.*did you mean 'rule-engine-1'"):
            node.tell("rule-engine-2", b"1")
        with pytest.raises(UnknownService, match=r"no service 'x'.*there are: rule-engine-1") as refused:
            node.tell("x", b"1")
        assert refused.value.fields == {"service_id": "x"}
        cluster.node("core-1", start=False)
        with pytest.raises(UnknownService, match=r"is of TB_RULE_ENGINE, not of TB_CORE.*that are: core-1"):
            node.tell("rule-engine-1", b"1", CORE)

    def test_one_that_never_joined_has_no_topic(self, cluster: Cluster) -> None:
        node = cluster.node("core-1", start=False)
        with pytest.raises(UnknownTopic):
            node.tell("core-1", b"1")

    def test_all_of_a_type_are_told(self, cluster: Cluster) -> None:
        engines = [cluster.node("re-1", ENGINE), cluster.node("re-2", CORE, ENGINE)]
        core = cluster.node("core-1")
        away = cluster.node("re-3", ENGINE, start=False)
        told = core.notifier.notify_all(ENGINE, notification("test", b"forget"))
        assert list(told) == ["re-1", "re-2", "re-3"]
        for node in engines:
            told[node.service.service_id].result(DEADLINE_S)
            node.wait_for(b"forget")
        with pytest.raises(UnknownTopic):
            told["re-3"].result(DEADLINE_S)
        assert core.notifier.notify_all(TRANSPORT, notification("test")) == {}
        assert (core.heard, away.heard) == ([], [])

    def test_topics_that_are_abandoned_for_long_are_removed(self, cluster: Cluster) -> None:
        node, settings = cluster.node("alive", CORE, ENGINE), cluster.settings
        admin = node.provider.admin()
        admin.create_topics(
            [
                *edge_specs(settings, uuid4()),
                *service_specs(settings, CORE, "gone"),
                *service_specs(settings, ENGINE, "gone"),
                *service_specs(settings, TRANSPORT, "stranger"),
                *service_specs(settings, CORE, "alive"),
            ]
        )

        def ours() -> set[str]:
            return {topic for topic in admin.topics() if topic.startswith(settings.prefix)}

        def look(gone_since: Mapping[str, float], now: float) -> tuple[set[str], Mapping[str, float]]:
            before = ours()
            sweep = remove_abandoned_topics(admin, {"alive"}, gone_since, now, settings, limit_s=HOUR_S)
            wait_until(lambda: ours() == before - sweep.removed)
            return {topic.rpartition(".")[2] for topic in sweep.removed}, sweep.gone_since

        everything = ours()
        now = 10 * HOUR_S
        assert look({"gone": now - HOUR_S}, now) == (set(), {"gone": now - HOUR_S, "stranger": now})
        removed, waiting = look({"stranger": now, "gone": now - HOUR_S}, now + 1)
        assert (removed, waiting) == ({"gone"}, {"stranger": now})
        assert ours() == {topic for topic in everything if not topic.endswith(".gone")}
        assert look(waiting, now + HOUR_S + 1) == ({"stranger"}, {})
        kept = ours()
        assert {topic for topic in kept if ".edge." in topic} == {topic for topic in everything if ".edge." in topic}
        assert {topic for topic in everything if topic.endswith(".alive")} <= kept
        assert look({}, 100 * HOUR_S) == (set(), {})
        node.tell("alive", b"still here")
        node.wait_for(b"still here")

    def test_topics_that_somebody_reads_are_not_abandoned(self, cluster: Cluster) -> None:
        node = cluster.node("lost-sight", CORE)
        wait_until(lambda: node.inbox.is_reading)
        admin = node.provider.admin()
        sweep = remove_abandoned_topics(admin, (), {"lost-sight": 0.0}, 2 * HOUR_S, cluster.settings, limit_s=HOUR_S)
        assert sweep.gone_since == {"lost-sight": 0.0}
        assert set(node.inbox.topics) <= admin.topics().keys()

    def test_one_whose_topics_were_removed_joins_again(self, cluster: Cluster) -> None:
        node = cluster.node("core-1")
        wait_until(lambda: node.inbox.is_reading)
        node.inbox.stop()
        node.provider.admin().delete_topics(node.inbox.topics)
        wait_until(lambda: not set(node.inbox.topics) & node.provider.admin().topics().keys())
        node.inbox.start()
        node.tell("core-1", b"back")
        node.wait_for(b"back")

    def test_topics_that_are_removed_under_its_feet_are_back_when_it_joins_again(self, cluster: Cluster) -> None:
        node = cluster.node("core-1")
        wait_until(lambda: node.inbox.is_reading)
        admin = node.provider.admin()
        admin.delete_topics(node.inbox.topics)
        wait_until(lambda: not set(node.inbox.topics) & admin.topics().keys())
        node.inbox.join()
        node.tell("core-1", b"back")
        node.wait_for(b"back")


class TestMemory(Notifications):
    @pytest.fixture
    def open_provider(self) -> Iterator[OpenProvider]:
        storage = MemoryStorage()
        with opened(
            lambda producing, consuming: MemoryProvider(storage, producing=producing, consuming=consuming)
        ) as open_provider:
            yield open_provider


class TestLog(Notifications):
    @pytest.fixture
    def open_provider(self, tmp_path: Path) -> Iterator[OpenProvider]:
        with opened(
            lambda producing, consuming: LogProvider(tmp_path / "log", producing=producing, consuming=consuming)
        ) as open_provider:
            yield open_provider


class TestKafka(Notifications, KafkaKit):
    """On a real broker."""


def test_groups_are_called_as_in_thingsboard() -> None:
    settings = QueueSettings(group_id_style="thingsboard")
    services = by_id([ServiceInfo("core-1", (CORE,)), ServiceInfo("t-1", (TRANSPORT,))])
    groups = {name: inbox_group(service, settings) for name, service in services.items()}
    assert groups == {"core-1": "tb-core-notifications-node-core-1", "t-1": "transport-node-t-1"}
