"""What the modules on Kafka share: providers on the run's broker."""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from queuecore.providers.kafka import KafkaProvider
from queuecore.providers.options import ConsumerOptions, GroupProtocol, KafkaOptions, ProducerOptions
from queuecore.testing.contract import OpenProvider, opened
from queuecore.testing.contract.kit import ContractKit
from queuecore.testing.services import KafkaService


class KafkaKit(ContractKit):
    short_session_ms: ClassVar[int] = 2_000
    knows_ends = False
    knows_work_from_before = False
    remembers_displaced = False
    compares_epochs = False
    group_protocol: ClassVar[GroupProtocol] = "classic"

    @pytest.fixture
    def open_provider(self, kafka_service: KafkaService) -> Iterator[OpenProvider]:
        def open_kafka(producing: ProducerOptions, consuming: ConsumerOptions) -> KafkaProvider:
            # The library gives signs of life by itself: who is to be missed must go without polling for too long.
            is_short = consuming.session_timeout_ms == self.short_session_ms
            patience_ms = consuming.session_timeout_ms if is_short else KafkaOptions().max_poll_interval_ms
            kafka = KafkaOptions(group_protocol=self.group_protocol, max_poll_interval_ms=patience_ms)
            servers = kafka_service.bootstrap_servers
            return KafkaProvider(servers, kafka=kafka, producing=producing, consuming=consuming)

        with opened(open_kafka) as open_provider:
            yield open_provider
