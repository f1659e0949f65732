"""An address at which Prometheus finds what a process shows."""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.registry import Collector

from queueapi.listening import host_and_port
from queuecore.errors import ConfigurationError


class MetricsServer:
    """Serves `/metrics` on threads of its own, from when it is made until it is stopped. Nobody is asked who they are:
    the address should be one that only Prometheus reaches. Leaving its `with` block stops it."""

    def __init__(self, listen: str, collectors: Iterable[Collector]) -> None:
        """`listen` is `host:port`. ConfigurationError where it is not, or cannot be listened on."""
        registry = CollectorRegistry()
        for collector in collectors:
            registry.register(collector)
        try:
            host, port = host_and_port(listen)
        except ValueError as error:
            raise ConfigurationError(f"SWITCHYARD_METRICS_LISTEN: {listen!r} {error}") from None
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except (OSError, UnicodeError) as error:
            raise _unusable(listen, error) from error
        self.url = f"http://{listen}/metrics"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _unusable(listen: str, error: OSError | UnicodeError) -> ConfigurationError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ConfigurationError(
        f"SWITCHYARD_METRICS_LISTEN: cannot listen on {listen} ({reason}); stop what uses it, or name another address "
        "of this machine"
    )
