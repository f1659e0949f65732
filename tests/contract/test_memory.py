"""The in-memory provider keeps the contract."""

from collections.abc import Iterator

import pytest

from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.testing.contract import OpenProvider, ProviderContract, opened


class TestMemory(ProviderContract):
    @pytest.fixture
    def open_provider(self) -> Iterator[OpenProvider]:
        storage = MemoryStorage()
        with opened(
            lambda producing, consuming: MemoryProvider(storage, producing=producing, consuming=consuming)
        ) as open_provider:
            yield open_provider


class TestMemoryInternalPartitions(TestMemory):
    use_internal_partition = True
