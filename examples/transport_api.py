"""A transport asks a core who a device is, and for its session: threads that wait, and a core that serves them all.

    python examples/transport_api.py
    python examples/transport_api.py --provider log --folder var/transport
    python examples/transport_api.py --provider kafka --servers localhost:9092

    transport-1 ──(tb_transport.api.requests)──> core ──> its database
    transport-1 <──(tb_transport.api.responses.transport-1)── core

Whatever goes wrong has a name: a device that nobody knows, a core that is too slow, and, when too many wait for it
already, the refusal to ask it at all. It ends by itself.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from queuecore import Channel, Provider, QueueMessage, QueueSettings, open_provider
from queuecore.errors import RequestFailed, RequestTimeout, TooManyRequests
from queuecore.requests import Request, RequestOptions, RequestTemplate, RequestTopics, ResponseTemplate

DEVICES = 20
MAX_PENDING = 8
SHORT_MS = 300


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class Database:
    """Whose device has which credentials; it keeps no tokens, only what is made of them. It answers while it is not
    locked, and keeps who asks waiting otherwise, as databases do."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._devices = {digest(token): device for token, device in tokens.items()}
        self.is_answering = threading.Event()
        self.is_answering.set()

    def device_of(self, token: str) -> str | None:
        self.is_answering.wait()
        return self._devices.get(digest(token))


class Core:
    """Answers `validate` with the device that has these credentials, and `session` with a device's session, made where
    there is none. A request may come twice: both answers are the same then. Its handler is async: requests that wait
    for the database cost no thread of their own here, and all of the core's state belongs to one event loop."""

    def __init__(self, provider: Provider, settings: QueueSettings, database: Database) -> None:
        self.database = database
        self.sessions: dict[str, str] = {}
        topics = RequestTopics.of(Channel.TRANSPORT_API_REQUESTS, settings)
        self.responses = ResponseTemplate(provider, topics, self.answer)

    async def answer(self, request: Request) -> bytes:
        asked = json.loads(request.data)
        match asked["ask"]:
            case "validate":
                return json.dumps(await self.validate(asked["token"])).encode()
            case "session":
                return json.dumps(self.session(asked["device"])).encode()
            case other:
                raise RequestFailed(f"a core does not know {other!r}", error_code="unknown_request")

    async def validate(self, token: str) -> str:
        device = await asyncio.to_thread(self.database.device_of, token)
        if device is None:
            # The token is a secret, right or wrong: no error names it.
            raise RequestFailed("no device has these credentials", error_code="unknown_device")
        return device

    def session(self, device: str) -> str:
        return self.sessions.setdefault(device, str(uuid4()))


class Transport:
    """Has devices' connections, each with a thread that waits for the core. Safe from any thread."""

    def __init__(self, template: RequestTemplate) -> None:
        self.template = template

    def connect(self, token: str, timeout_ms: int | None = None) -> str:
        """The device's session. RequestFailed `unknown_device`, RequestTimeout, or TooManyRequests."""
        device = self.ask(None, timeout_ms, ask="validate", token=token)
        # With the device as key: where there are several cores, always the same one has its session.
        return self.ask(device.encode(), timeout_ms, ask="session", device=device)

    def ask(self, key: bytes | None, timeout_ms: int | None, **request: str) -> str:
        message = QueueMessage(key, json.dumps(request).encode())
        return str(json.loads(self.template.send(message, timeout_ms=timeout_ms).result().data))


def connect_all(transport: Transport) -> None:
    tokens = [f"token-{number}" for number in range(DEVICES)]
    with ThreadPoolExecutor(MAX_PENDING) as threads:
        first = list(threads.map(transport.connect, tokens))
        again = list(threads.map(transport.connect, tokens))
    kept = "the same" if first == again else "others"
    print(f"{DEVICES} devices connected, with {len(set(first))} sessions; when they came again, with {kept}")


def connect_stranger(transport: Transport) -> None:
    try:
        transport.connect("guessed")
    except RequestFailed as error:
        print(f"a stranger: {error.error_code}, {error.message}")


def ask_slow_core(transport: Transport, database: Database) -> None:
    """The database hangs: one does not wait for long, others wait, and one more than may is not even sent."""
    database.is_answering.clear()
    try:
        transport.connect("token-1", SHORT_MS)
    except RequestTimeout as error:
        print(f"a slow core: {error.code}, {error}")
    question = json.dumps({"ask": "validate", "token": "token-2"}).encode()
    waiting = [transport.template.send(question) for _ in range(MAX_PENDING)]
    try:
        transport.connect("token-3")
    except TooManyRequests as error:
        print(f"one more than may wait: {error.code}, {error}")
    finally:
        database.is_answering.set()
    answers = {json.loads(one.result().data) for one in waiting}
    print(f"the database is back: {len(waiting)} that waited have their answer, {', '.join(answers)}")


def run(provider: Provider, settings: QueueSettings) -> None:
    database = Database({f"token-{number}": f"device-{number}" for number in range(DEVICES)})
    core = Core(provider, settings, database)
    topics = RequestTopics.of(Channel.TRANSPORT_API_REQUESTS, settings)
    options = RequestOptions(max_pending_requests=MAX_PENDING)
    with core.responses, RequestTemplate(provider, topics, "transport-1", options) as template:
        transport = Transport(template)
        connect_all(transport)
        connect_stranger(transport)
        ask_slow_core(transport, database)
    counts = template.counts
    asked = f"{counts.sent} sent, {counts.answered} answered, {counts.failed} failed, {counts.timed_out} timed out"
    print(f"requests: {asked}, {counts.refused} refused")


def main() -> None:
    parser = argparse.ArgumentParser(description="A transport asks a core about devices.")
    parser.add_argument("--provider", choices=["in-memory", "log", "kafka"], default="in-memory")
    parser.add_argument("--folder", help="where the log keeps its files; by default a temporary folder")
    parser.add_argument("--servers", help="Kafka's brokers, as host:port,host:port")
    parser.add_argument("--prefix", default="", help="what all topics begin with, where others are on the same Kafka")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or temporary) if options.provider == "log" else None
        with closing(open_provider(options.provider, folder=folder, servers=options.servers)) as provider:
            run(provider, QueueSettings(prefix=options.prefix))


if __name__ == "__main__":
    main()
