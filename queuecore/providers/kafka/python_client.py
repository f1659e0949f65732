"""kafka-python's admin client.

Unlike librdkafka's it asks for the offsets of many groups in one request, deletes committed offsets, measures
partitions and moves replicas; and it finds its way when the broker goes that it took for the controller.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from confluent_kafka import KafkaError
from kafka import KafkaAdminClient
from kafka.errors import BrokerResponseError, KafkaTimeoutError, NotControllerError, UnknownBrokerIdError, UnknownError
from kafka.errors import KafkaError as PythonClientError
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket

from queuecore.errors import QueueError
from queuecore.providers.kafka.connection import Connection
from queuecore.providers.kafka.security import security_settings
from queuecore.providers.kafka.silence import SilentNetwork, silently

_REFUSAL: Final = re.compile(r"\[Error (-?\d+)\] \w+(?:: )?(.*)", re.DOTALL)


class _Sockets(KafkaNetSocket):
    """Closes a socket that does not get connected, which the library leaves to the garbage collector. It is chosen as
    if it were a proxy."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at)
        except BaseException:
            sock.close()
            raise


class Clients:
    """Clients to ask with, each for one thread at a time. One is kept open for the next who asks. Safe from any thread.

    What a client knew when a question failed may be out of date, so it is closed then.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._idle: KafkaAdminClient | None = None
        self._is_closed = False

    @contextmanager
    def borrowed(self, timeout_s: float) -> Iterator[KafkaAdminClient]:
        """A client that is connected; PythonClientError when it is not within the time."""
        with self._lock:
            client, self._idle = self._idle, None
        with silently():
            client = client or _connected(self._connection, timeout_s)
            is_sound = False
            try:
                yield client
                is_sound = True
            except QueueError:
                is_sound = True
                raise
            finally:
                self._give_back(client, is_sound=is_sound)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, None
        if idle is not None:
            with silently():
                idle.close()

    def _give_back(self, client: KafkaAdminClient, *, is_sound: bool) -> None:
        with self._lock:
            if is_sound and self._idle is None and not self._is_closed:
                self._idle = client
                return
        client.close()


def _connected(connection: Connection, timeout_s: float) -> KafkaAdminClient:
    with ExitStack() as failing:

        def connecting(**settings: Any) -> KafkaNetClient:
            timeout_ms = connection.options.request_timeout_ms
            network = KafkaNetClient(
                SilentNetwork(**settings), **settings, socket_connection_setup_timeout_ms=timeout_ms
            )
            # An admin client that could not connect would leave its thread behind.
            failing.callback(network.close)
            return network

        timeout_ms = max(1, round(timeout_s * 1000))
        client = KafkaAdminClient(**_settings(connection), bootstrap_timeout_ms=timeout_ms, kafka_client=connecting)
        failing.pop_all()
        return client


@contextmanager
def seeking_controller() -> Iterator[None]:
    """NotControllerError where the library says so with a plain RuntimeError: after it has asked a second broker that
    is not, or not yet, the controller."""
    try:
        yield
    except RuntimeError as error:
        raise NotControllerError(*error.args) from error


def told(error: PythonClientError) -> KafkaError:
    """The same in the words of the other library."""
    if isinstance(error, BrokerResponseError):
        return KafkaError(error.errno)
    if isinstance(error, UnknownBrokerIdError):
        return KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    code = KafkaError._TIMED_OUT if isinstance(error, KafkaTimeoutError) else KafkaError._TRANSPORT  # noqa: SLF001
    return KafkaError(code, str(error))


def parse_refusal(text: str) -> tuple[int, str]:
    """The broker's code and reason, where the library gives them as text alone."""
    found = _REFUSAL.match(text)
    return (int(found[1]), found[2]) if found else (UnknownError.errno, text)


def _settings(connection: Connection) -> dict[str, Any]:
    options, security = connection.options, connection.options.security
    return {
        "bootstrap_servers": connection.bootstrap_servers,
        "client_id": options.client_id,
        "request_timeout_ms": options.request_timeout_ms,
        "proxy_url": f"{_Sockets.SCHEMES[0]}://",
        "security_protocol": security_settings(security)["security.protocol"].upper(),
        "ssl_check_hostname": security.check_hostname,
        "ssl_cafile": security.ca or None,
        "ssl_certfile": security.certificate or None,
        "ssl_keyfile": security.key or None,
        "ssl_password": security.key_password or None,
        "sasl_mechanism": security.sasl_mechanism or None,
        "sasl_plain_username": security.username or None,
        "sasl_plain_password": security.password or None,
    }
