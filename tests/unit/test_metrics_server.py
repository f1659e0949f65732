"""Metrics where Prometheus looks for them, and a clear word where they cannot be."""

import socket
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from queueapi.metrics_server import MetricsServer
from queuecore.errors import ConfigurationError
from queuecore.testing.services.ports import free_port


class Answer(Collector):
    def __init__(self, name: str) -> None:
        self.name = name

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(self.name, "Of a test.", value=42)


def shown(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own
        return str(answer.read(), "utf-8")


def test_all_collectors_are_shown_until_it_is_stopped() -> None:
    listen = f"127.0.0.1:{free_port()}"
    with MetricsServer(listen, [Answer("one"), Answer("other")]) as server:
        assert server.url == f"http://{listen}/metrics"
        assert {"one 42.0", "other 42.0"} <= set(shown(server.url).splitlines())
    with pytest.raises(OSError, match="refused"):
        shown(server.url)


def test_an_address_is_free_again_after_a_stop() -> None:
    listen = f"127.0.0.1:{free_port()}"
    for name in ("one", "other"):
        with MetricsServer(listen, [Answer(name)]) as server:
            assert f"{name} 42.0" in shown(server.url)


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigurationError) as caught:
            MetricsServer(listen, [])
    assert f"SWITCHYARD_METRICS_LISTEN: cannot listen on {listen} (Address already in use)" in str(caught.value)
    assert "name another address" in str(caught.value)


@pytest.mark.parametrize("host", ["192.0.2.1", f"{'a' * 64}.example"])
def test_a_host_that_is_not_this_machine(host: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"cannot listen on {host}:9464 \(.+\); stop what uses it"):
        MetricsServer(f"{host}:9464", [])


def test_what_is_no_address() -> None:
    with pytest.raises(ConfigurationError, match="SWITCHYARD_METRICS_LISTEN: '9464' is no address to listen on"):
        MetricsServer("9464", [])
