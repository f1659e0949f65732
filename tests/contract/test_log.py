"""The log provider keeps the contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuecore.providers.log import LogProvider
from queuecore.testing.contract import OpenProvider, ProviderContract, opened


class TestLog(ProviderContract):
    @pytest.fixture
    def open_provider(self, tmp_path: Path) -> Iterator[OpenProvider]:
        with opened(
            lambda producing, consuming: LogProvider(tmp_path / "log", producing=producing, consuming=consuming)
        ) as open_provider:
            yield open_provider


class TestLogInternalPartitions(TestLog):
    use_internal_partition = True
