"""What the modules on requests share: those that ask and those that answer, on every provider."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from queuecore.errors import RequestFailed
from queuecore.providers.base import Provider
from queuecore.providers.log import LogProvider
from queuecore.providers.memory import MemoryProvider, MemoryStorage
from queuecore.requests import (
    Request,
    RequestHandler,
    RequestOptions,
    RequestTemplate,
    RequestTopics,
    ResponseOptions,
    ResponseTemplate,
)
from queuecore.testing.contract import OpenProvider, opened
from queuecore.testing.contract.kit import ContractKit, new_name
from queuecore.testing.waiting import DEADLINE_S


def echo(request: Request) -> bytes:
    return request.data


class Services:
    """Makes those that ask and those that answer, as processes of one installation would, and stops them at the end."""

    def __init__(self, open_provider: OpenProvider, stack: ExitStack) -> None:
        self.topics = RequestTopics.named("prices", partitions=4, prefix=new_name())
        self.open_provider = open_provider
        self._stack = stack

    def requester(self, service_id: str = "shop-1", options: RequestOptions | None = None) -> RequestTemplate:
        template = RequestTemplate(self.open_provider(), self.topics, service_id, options or RequestOptions())
        self._stack.callback(template.stop)
        template.start()
        return template

    def responder(
        self, handler: RequestHandler = echo, options: ResponseOptions | None = None, provider: Provider | None = None
    ) -> ResponseTemplate:
        template = ResponseTemplate(
            provider or self.open_provider(), self.topics, handler, options or ResponseOptions()
        )
        self._stack.callback(template.stop)
        template.start()
        return template

    def committed(self) -> int:
        """How many requests the responders are done with."""
        places = [info.place for info in self.topics.requests]
        found = self.open_provider().admin().committed_offsets({self.topics.group: places})
        return sum(found[self.topics.group].values())


def error_code(template: RequestTemplate, data: bytes) -> str:
    with pytest.raises(RequestFailed) as caught:
        template.send(data).result(DEADLINE_S)
    return caught.value.error_code


class Gate:
    """A handler that stays with each request until it is let go, and counts those it has begun."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.begun: list[Request] = []

    def __call__(self, request: Request) -> bytes:
        self.begun.append(request)
        assert self.goes_on.wait(DEADLINE_S)
        return request.data


class RequestKit(ContractKit):
    @pytest.fixture
    def services(self, open_provider: OpenProvider) -> Iterator[Services]:
        with ExitStack() as stack:
            yield Services(open_provider, stack)


class MemoryKit(RequestKit):
    @pytest.fixture
    def open_provider(self) -> Iterator[OpenProvider]:
        storage = MemoryStorage()
        with opened(
            lambda producing, consuming: MemoryProvider(storage, producing=producing, consuming=consuming)
        ) as open_provider:
            yield open_provider


class LogKit(RequestKit):
    @pytest.fixture
    def open_provider(self, tmp_path: Path) -> Iterator[OpenProvider]:
        with opened(
            lambda producing, consuming: LogProvider(tmp_path / "log", producing=producing, consuming=consuming)
        ) as open_provider:
            yield open_provider
