"""What an administrator of Kafka meets while the brokers change, and settings that others made."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka.errors import NotControllerError, RequestTimedOutError

from queuecore.errors import ConfigurationError, ProviderUnavailable
from queuecore.providers.base import DAY_MS, FOR_EVER, Provider, TopicSpec
from queuecore.providers.kafka import KafkaProvider, agreeing
from queuecore.providers.options import KafkaOptions
from queuecore.testing.contract.kit import create_topic, new_name, places
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import DEADLINE_S, wait_until
from tests.contract.kafka import KafkaKit

# Makes of the brokers' answer another.
Spoil = Callable[[Any], Any]
# Spoils the first answers to a method of the library's client; gives how often it was called.
SpoilAnswers = Callable[..., list[str]]


def timed_out(answer: Any) -> Any:
    """As the brokers say it of each topic when a change takes them too long, though it comes about."""
    if isinstance(answer, dict):
        for topic in answer["topics"]:
            topic["error_code"] = RequestTimedOutError.errno
    else:
        for topic in answer.results:
            topic.error_code = RequestTimedOutError.errno
    return answer


def without_controller(_: Any) -> Any:
    """As the library says it when it has asked two brokers in vain."""
    raise RuntimeError("Failed to find active controller id!")


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> SpoilAnswers:
    def spoil_answers(method: str, spoil_one: Spoil, times: int = 1) -> list[str]:
        ask, calls = getattr(KafkaAdminClient, method), list[str]()

        def asked(client: KafkaAdminClient, *args: Any, **options: Any) -> Any:
            calls.append(method)
            answer = ask(client, *args, **options)
            return spoil_one(answer) if len(calls) <= times else answer

        monkeypatch.setattr(KafkaAdminClient, method, asked)
        return calls

    return spoil_answers


@pytest.fixture
def hasty(kafka_service: KafkaService) -> Iterator[Provider]:
    """One that soon gives up."""
    options = KafkaOptions(request_timeout_ms=1_000)
    with closing(KafkaProvider(kafka_service.bootstrap_servers, kafka=options)) as provider:
        yield provider


class TestLostAnswers(KafkaKit):
    """What was done and not answered is asked for again, and found done."""

    @pytest.mark.parametrize("spoil_one", [timed_out, without_controller])
    def test_topics_come_change_and_go(self, provider: Provider, spoil: SpoilAnswers, spoil_one: Spoil) -> None:
        methods = ("create_topics", "create_partitions", "delete_topics")
        calls = [spoil(method, spoil_one) for method in methods]
        admin, spec = provider.admin(), TopicSpec(new_name(), 2)
        admin.create_topics([spec])
        assert admin.topics()[spec.name].partitions == 2
        admin.alter_topics([replace(spec, partitions=3)])
        assert admin.topics()[spec.name].partitions == 3
        admin.delete_topics([spec.name])
        assert spec.name not in admin.topics()
        assert calls == [[method] * 2 for method in methods]

    def test_a_setting_is_set(self, provider: Provider, spoil: SpoilAnswers) -> None:
        spec = TopicSpec(new_name())
        provider.admin().create_topics([spec])
        calls = spoil(
            "alter_configs", lambda answer: {"topic": dict.fromkeys(answer["topic"], str(NotControllerError()))}
        )
        provider.admin().alter_topics([replace(spec, retention_ms=DAY_MS)])
        wait_until(lambda: provider.admin().topics()[spec.name].retention_ms == DAY_MS)
        assert len(calls) == 2

    @pytest.mark.parametrize("spoil_one", [timed_out, without_controller])
    def test_who_is_never_answered_is_told_in_our_words(
        self, hasty: Provider, spoil: SpoilAnswers, spoil_one: Spoil
    ) -> None:
        name = new_name()
        calls = spoil("create_topics", spoil_one, times=1_000)
        with pytest.raises(ProviderUnavailable, match=f"cannot create topics {name}: Kafka at .*; check that"):
            hasty.admin().create_topics([TopicSpec(name)])
        assert len(calls) > 1

    def test_a_deletion_that_no_broker_shows_is_none(self, hasty: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = TopicSpec(new_name())
        hasty.admin().create_topics([spec])
        monkeypatch.setattr(agreeing, "find_everywhere", lambda *_: [])
        with pytest.raises(ProviderUnavailable, match=f"topics {spec.name} are not shown as gone"):
            hasty.admin().delete_topics([spec.name])


class TestSettingsOfOthers(KafkaKit):
    def test_a_topic_that_keeps_all_can_be_made_to_forget(
        self, provider: Provider, kafka_service: KafkaService
    ) -> None:
        admin, name = provider.admin(), new_name()
        theirs = AdminClient({"bootstrap.servers": kafka_service.bootstrap_servers})
        # The limit is the one that is wanted, but nothing looks at it.
        new = NewTopic(name, 1, 1, config={"cleanup.policy": "", "retention.ms": str(DAY_MS)})
        theirs.create_topics([new])[name].result(DEADLINE_S)
        there = wait_until(lambda: admin.topics().get(name))
        assert (there.cleanup, there.retention_ms) == ("delete", FOR_EVER)
        admin.alter_topics([replace(there, retention_ms=DAY_MS)])
        wait_until(lambda: admin.topics()[name] == replace(there, retention_ms=DAY_MS))

    def test_several_refusals_are_told_like_one(self, provider: Provider) -> None:
        infos = create_topic(provider, TopicSpec(new_name(), 2, cleanup="compact"))
        for some in (infos, infos[:1]):
            with pytest.raises(ConfigurationError, match="cannot delete records"):
                provider.admin().delete_records(dict.fromkeys(places(some), 0))
