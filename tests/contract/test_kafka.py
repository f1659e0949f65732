"""The Kafka provider keeps the contract, on a real broker."""

from collections.abc import Iterator

import pytest

from queuecore.providers.kafka import KafkaProvider
from queuecore.testing.contract import OpenProvider, ProviderContract, opened
from queuecore.testing.services import KafkaService


class TestKafka(ProviderContract):
    @pytest.fixture
    def open_provider(self, kafka_service: KafkaService) -> Iterator[OpenProvider]:
        with opened(lambda: KafkaProvider(kafka_service.bootstrap_servers)) as open_provider:
            yield open_provider
