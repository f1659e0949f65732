"""`webhook`: messages sent to a web address, over connections that reach only what they may."""

import base64
import hashlib
import hmac
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from queueapi.outgoing import lookup
from queueapi.outgoing.addresses import AddressRefused, connect, is_open
from queuecore import ProcessingStrategy, ProcessingStrategyType, Queues, open_queues
from queuecore.consuming.context import NoComposer, OpenDelivery, Workplace
from queuecore.consuming.handlers import bind, check_handler
from queuecore.errors import ConfigurationError, GivenUp
from queuecore.messages import REPLAY_ID, REPLAY_LETTER, TENANT_ID, Record
from queuecore.testing.services.certificates import Authority, missing_openssl
from queuecore.testing.waiting import wait_until
from queuecore.topics import TopicPartitionInfo
from tests.integration.web_receiver import Receiver, answer
from tests.services import require_or_skip
from workers.handlers.webhook import Webhook, WebhookFailed, WebhookRefused
from workers.handlers.webhook_options import WebhookOptions

HOW_TO = Path(__file__).parents[2] / "docs" / "howto" / "write-a-handler.md"
INFO = TopicPartitionInfo("tb_rule_engine", 2)
SECRET = "a secret of some length"


@pytest.fixture(autouse=True)
def _installation_allows_private_addresses(settings) -> None:
    settings.SWITCHYARD = replace(settings.SWITCHYARD, webhook_allow_private=True)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def message(offset: int = 5, data: bytes = b'{"sensor": 7}', **headers: bytes) -> Record:
    return Record(INFO.full_topic_name, 0, offset, 1_700_000_000_000, None, headers, data)


def send(webhook: Any, record: Record | None = None, timeout_s: float | None = None) -> None:
    record = record or message()
    # Without a timeout there is no deadline; with one, it counts from now.
    workplace = Workplace("Main", {INFO.place: INFO}, NoComposer(), timeout_s)
    webhook(record, OpenDelivery(workplace, record, 3, time.monotonic()))


def hook(receiver: Receiver, **options: Any) -> Any:
    return bind("webhook", {"url": receiver.url(), "allow_private": True, "retries": 0, **options})


def documented_recipe() -> Callable[[bytes, dict[str, str], bytes], bool]:
    blocks = re.findall(r"^```python\n(.*?)^```$", HOW_TO.read_text(), re.MULTILINE | re.DOTALL)
    defined: dict[str, Any] = {}
    exec(next(block for block in blocks if "def is_genuine" in block), defined)  # noqa: S102 - from our own document
    return defined["is_genuine"]


class TestWhatIsSent:
    def test_the_payload_and_where_it_comes_from(self, receiver: Receiver) -> None:
        send(hook(receiver, content_type="application/json", headers={"Authorization": "Bearer x"}))
        (request,) = receiver.requests
        assert (request.method, request.path, request.body) == ("POST", "/hook", b'{"sensor": 7}')
        assert request.headers["content-type"] == "application/json"
        assert request.headers["authorization"] == "Bearer x"
        assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
        origin = {name: value for name, value in request.headers.items() if name.startswith("switchyard-")}
        assert origin == {
            "switchyard-queue": "Main",
            "switchyard-topic": "tb_rule_engine.2",
            "switchyard-partition": "0",
            "switchyard-offset": "5",
            "switchyard-attempt": "3",
        }

    def test_path_query_and_method(self, receiver: Receiver) -> None:
        send(bind("webhook", {"url": receiver.url("/a%20b?x=1"), "allow_private": True, "method": "PUT"}))
        assert [(request.method, request.path) for request in receiver.requests] == [("PUT", "/a%20b?x=1")]

    def test_a_message_keeps_its_id(self, receiver: Receiver) -> None:
        webhook = hook(receiver)
        for offset in (5, 5, 6):
            send(webhook, message(offset))
        first, again, other = [request.headers["webhook-id"] for request in receiver.requests]
        assert first == again != other
        assert re.fullmatch(r"msg_[0-9a-f]{32}", first)

    def test_what_producers_wrote_cannot_end_a_header(self, receiver: Receiver) -> None:
        replay, letter = str(uuid4()), str(uuid4())
        headers = {TENANT_ID: b"a\r\nX-Evil: yes", REPLAY_ID: replay.encode(), REPLAY_LETTER: letter.encode()}
        send(hook(receiver), message(**headers))
        (request,) = receiver.requests
        assert request.headers["switchyard-tenant"] == "a%0D%0AX-Evil%3A%20yes"
        assert (request.headers["switchyard-replay"], request.headers["switchyard-letter"]) == (replay, letter)
        assert "x-evil" not in request.headers

    @pytest.mark.parametrize("secret", [SECRET, "whsec_" + base64.b64encode(SECRET.encode()).decode()])
    def test_the_signature_covers_id_time_and_body(self, receiver: Receiver, secret: str) -> None:
        send(hook(receiver, secret=secret))
        (request,) = receiver.requests
        headers = request.headers
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
        expected = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60

    def test_the_documented_recipe_verifies_it(self, receiver: Receiver) -> None:
        send(hook(receiver, secret=SECRET))
        (request,) = receiver.requests
        is_genuine = documented_recipe()
        assert is_genuine(SECRET.encode(), request.headers, request.body)
        assert not is_genuine(SECRET.encode(), request.headers, request.body + b" ")
        assert not is_genuine(b"another secret", request.headers, request.body)
        assert not is_genuine(SECRET.encode(), {**request.headers, "webhook-timestamp": "1"}, request.body)

    def test_without_a_secret_nothing_is_signed(self, receiver: Receiver) -> None:
        send(hook(receiver))
        assert "webhook-signature" not in receiver.requests[0].headers


class TestAnswers:
    @pytest.mark.parametrize("status", [200, 201, 202, 204])
    def test_done(self, receiver: Receiver, status: int) -> None:
        receiver.next.append(answer(status))
        send(hook(receiver))

    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
    def test_worth_another_try(self, receiver: Receiver, status: int) -> None:
        receiver.next.append(answer(status, b"busy,\n  come back", Retry_After="120"))
        with pytest.raises(WebhookFailed) as failed:
            send(hook(receiver))
        assert f"http://127.0.0.1:{receiver.port} answered {status}" in failed.value.message
        assert "busy, come back; it asks to be tried again after 120" in failed.value.message
        assert not isinstance(failed.value, GivenUp)

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422])
    def test_given_up(self, receiver: Receiver, status: int) -> None:
        receiver.next.append(answer(status))
        with pytest.raises(WebhookRefused, match=f"answered {status}") as refused:
            send(hook(receiver, retries=3))
        assert isinstance(refused.value, GivenUp)
        assert len(receiver.requests) == 1

    def test_redirects_are_not_followed(self, receiver: Receiver) -> None:
        receiver.next.append(answer(307, Location="http://169.254.169.254/latest"))
        with pytest.raises(WebhookRefused, match="redirects are not followed"):
            send(hook(receiver))
        assert len(receiver.requests) == 1

    def test_paths_are_told_to_nobody(self, receiver: Receiver) -> None:
        receiver.next.append(answer(500))
        with pytest.raises(WebhookFailed) as failed:
            send(bind("webhook", {"url": receiver.url("/T0K3N?key=k"), "allow_private": True, "retries": 0}))
        assert "T0K3N" not in failed.value.message

    def test_repeated_at_once_as_often_as_configured(self, receiver: Receiver) -> None:
        receiver.next.extend([answer(503, Retry_After="0"), answer(500)])
        send(hook(receiver, retries=2))
        assert len(receiver.requests) == 3
        assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1

    def test_who_asks_for_more_time_than_there_is_is_not_asked_again(self, receiver: Receiver) -> None:
        receiver.next.append(answer(503, Retry_After="3600"))
        with pytest.raises(WebhookFailed, match="after 3600"):
            send(hook(receiver, retries=2), timeout_s=30)
        assert len(receiver.requests) == 1

    def test_nobody_waits_for_long_even_without_a_deadline(self, receiver: Receiver) -> None:
        receiver.next.append(answer(429, Retry_After="86400"))
        with pytest.raises(WebhookFailed, match="after 86400"):
            send(hook(receiver, retries=2))

    def test_a_long_answer_is_not_read_to_its_end(self, receiver: Receiver) -> None:
        receiver.next.append(answer(200, b"x" * 100_000))
        webhook = hook(receiver, max_response_bytes=10)
        send(webhook)
        send(webhook)
        assert receiver.connections == 2


class TestConnections:
    def test_one_is_kept_for_each_thread(self, receiver: Receiver) -> None:
        webhook = hook(receiver)
        for offset in range(3):
            send(webhook, message(offset))
        thread = threading.Thread(target=send, args=(webhook,))
        thread.start()
        thread.join()
        assert len(receiver.requests) == 4
        assert receiver.connections == 2

    def test_one_that_the_server_closed_is_opened_anew(self, receiver: Receiver) -> None:
        def hang_up(handler: BaseHTTPRequestHandler) -> None:
            answer(204)(handler)
            handler.close_connection = True

        receiver.next.append(hang_up)
        webhook = hook(receiver)
        send(webhook)
        send(webhook)
        assert receiver.connections == 2

    def test_one_that_the_server_closes_as_it_is_used_is_opened_anew(self, receiver: Receiver) -> None:
        def vanish(handler: BaseHTTPRequestHandler) -> None:
            handler.close_connection = True

        receiver.next.extend([answer(204), vanish])
        webhook = hook(receiver)
        send(webhook)
        send(webhook)
        assert len(receiver.requests) == 3
        assert receiver.connections == 2

    def test_a_new_one_that_gives_no_answer_has_failed(self, receiver: Receiver) -> None:
        receiver.next.append(lambda handler: setattr(handler, "close_connection", True))
        with pytest.raises(WebhookFailed, match="RemoteDisconnected"):
            send(hook(receiver))

    def test_nobody_there(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        with pytest.raises(WebhookFailed, match="cannot be reached: ConnectionRefusedError"):
            send(bind("webhook", {"url": f"http://127.0.0.1:{port}/", "allow_private": True, "retries": 0}))

    def test_a_name_that_nobody_has(self) -> None:
        with pytest.raises(WebhookFailed, match="cannot be reached: gaierror"):
            send(bind("webhook", {"url": "https://nobody.invalid/", "retries": 0}))


class TestTime:
    def test_no_answer(self, receiver: Receiver) -> None:
        over = threading.Event()
        receiver.next.append(lambda handler: [over.wait(30), answer(204)(handler)][0])
        with pytest.raises(WebhookFailed, match=r"did not answer within 0\.1 s"):
            send(hook(receiver, timeout_ms=100))
        over.set()

    def test_a_byte_now_and_then_wins_no_time(self, receiver: Receiver) -> None:
        over = threading.Event()

        def trickle(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            while not over.wait(0.02):
                handler.wfile.write(b"x")
                handler.wfile.flush()
            handler.close_connection = True

        receiver.next.append(trickle)
        with pytest.raises(WebhookFailed, match=r"did not answer within 0\.3 s"):
            send(hook(receiver, timeout_ms=300))
        over.set()

    def test_the_time_of_the_queue_ends_earlier(self, receiver: Receiver) -> None:
        over = threading.Event()
        receiver.next.append(lambda handler: [over.wait(30), answer(204)(handler)][0])
        with pytest.raises(WebhookFailed, match=r"within 0\.\d+ s"):
            send(hook(receiver, timeout_ms=60_000, retries=2), timeout_s=0.2)
        over.set()


class TestLookUps:
    """Of names, by a resolver that is silent for one of them."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
        asked: list[str] = []
        over = threading.Event()

        def resolve(host: str, port: int, **options: Any) -> Any:
            asked.append(host)
            if host.startswith("silent"):
                over.wait(30)
            return _always("127.0.0.1")(host, port, **options)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        yield asked
        over.set()
        wait_until(lambda: not any(thread.name.startswith("look-up-") for thread in threading.enumerate()))

    @pytest.mark.parametrize("limit", ["timeout_ms", "connect_timeout_ms"])
    def test_the_limit_holds_for_them_too(self, receiver: Receiver, asked: list[str], limit: str) -> None:
        webhook = hook(receiver, url=receiver.url(host="silent.test"), **{limit: 100})
        for _ in range(3):
            with pytest.raises(WebhookFailed, match=r"the name silent\.test could not be looked up in time"):
                send(webhook)
        assert asked == ["silent.test"]
        send(hook(receiver, url=receiver.url(host="other.test")))
        assert len(receiver.requests) == 1

    def test_no_more_than_some_are_asked_for_at_once(
        self, receiver: Receiver, asked: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lookup, "SIDE_BY_SIDE", 2)
        for host in ("silent-1.test", "silent-2.test", "other.test"):
            with pytest.raises(WebhookFailed, match="could not be looked up in time"):
                send(hook(receiver, url=receiver.url(host=host), timeout_ms=50))
        assert asked == ["silent-1.test", "silent-2.test"]


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        if missing := missing_openssl():
            require_or_skip(missing)
        return Authority(tmp_path / "authority")

    def test_verified(self, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.own.certificate))
        with Receiver(authority.issue("server")) as receiver:
            webhook = hook(receiver)
            send(webhook)
            send(webhook)
            assert len(receiver.requests) == 2
            assert receiver.connections == 1

    def test_one_that_nobody_vouches_for(self, authority: Authority) -> None:
        with (
            Receiver(authority.issue("server")) as receiver,
            pytest.raises(WebhookFailed, match="SSLCertVerificationError"),
        ):
            send(hook(receiver))

    def test_one_for_another_name(self, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.own.certificate))
        monkeypatch.setattr(socket, "getaddrinfo", _always("127.0.0.1"))
        with (
            Receiver(authority.issue("server")) as receiver,
            pytest.raises(WebhookFailed, match="SSLCertVerificationError"),
        ):
            send(bind("webhook", {"url": receiver.url(host="other.test"), "allow_private": True, "retries": 0}))


def _always(address: str) -> Any:
    return lambda host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


class TestAddresses:
    @pytest.mark.parametrize(
        "address",
        [
            *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "0.0.0.0", "255.255.255.255"),  # noqa: S104
            *("169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16", "198.18.0.1"),
            *("224.0.0.1", "239.1.1.1", "233.252.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1"),
            *("fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1"),
            *("64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:db8::1"),
            *("fec0::1", "feff::1", "192.88.99.1", "192.0.0.8", "192.0.0.170", "192.0.0.9"),
        ],
    )
    def test_closed(self, address: str) -> None:
        assert not is_open(address)

    @pytest.mark.parametrize(
        "address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
    )
    def test_open(self, address: str) -> None:
        assert is_open(address)

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "2130706433", "0x7f.1", "127.1"])
    def test_a_name_for_this_machine_is_not_reached(self, receiver: Receiver, host: str) -> None:
        with pytest.raises(AddressRefused, match="allow_private") as refused:
            send(bind("webhook", {"url": receiver.url(host=host)}))
        assert isinstance(refused.value, GivenUp)
        assert receiver.requests == []

    def test_a_host_that_is_no_name_is_refused(self) -> None:
        with pytest.raises(AddressRefused, match="mend the url"):
            connect("a..b", 80, allow_private=True, deadline=time.monotonic() + 1)

    def test_a_name_is_resolved_once_and_that_address_is_reached(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A name server that gives another answer the second time gains nothing: there is no second time."""
        asked = []

        def resolve(host: str, port: int, **_: Any) -> Any:
            asked.append(host)
            return _always("93.184.216.34" if len(asked) == 1 else "127.0.0.1")(host, port)

        reached = []

        def refuse(_: socket.socket, address: tuple[str, int]) -> None:
            reached.append(address[0])
            raise ConnectionRefusedError("nobody is there")

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(socket.socket, "connect", refuse)
        with pytest.raises(WebhookFailed, match="nobody is there"):
            send(bind("webhook", {"url": receiver.url(host="rebinding.test"), "retries": 0}))
        assert (asked, reached) == (["rebinding.test"], ["93.184.216.34"])

    def test_only_what_is_allowed_of_several_addresses_is_tried(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reached = []

        def refuse(_: socket.socket, address: tuple[str, int]) -> None:
            reached.append(address[0])
            raise ConnectionRefusedError("nobody is there")

        both = lambda host, port, **_: _always("127.0.0.1")(host, port) + _always("8.8.8.8")(host, port)  # noqa: E731
        monkeypatch.setattr(socket, "getaddrinfo", both)
        monkeypatch.setattr(socket.socket, "connect", refuse)
        with pytest.raises(WebhookFailed):
            send(bind("webhook", {"url": receiver.url(host="several.test"), "retries": 0}))
        assert reached == ["8.8.8.8"]

    def test_no_proxy_is_asked(self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        send(hook(receiver))
        assert len(receiver.requests) == 1


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({}, "'url' is missing"),
            ({"url": ""}, "the url is empty"),
            ({"url": "ftp://example.org/"}, "http:// or https://"),
            ({"url": "file:///etc/passwd"}, "http:// or https://"),
            ({"url": "https:///hook"}, "and a host"),
            ({"url": "https://example.org/a b"}, "%XX"),
            ({"url": "https://example.org/\r\nX: y"}, "%XX"),
            ({"url": "https://me:pass@example.org/"}, "credentials in 'headers'"),
            ({"url": "https://example.org/#part"}, "fragment"),
            ({"url": "https://example.org:99999/"}, "cannot be read"),
            ({"url": "https://[::1/"}, "cannot be read"),
            ({"url": "https://a..b/"}, "no name that could be looked up"),
            ({"url": f"https://{'a' * 64}.example.org/"}, "no name that could be looked up"),
            ({"url": "http://127.0.0.1/"}, "'allow_private'"),
            ({"url": "http://[::ffff:10.0.0.1]/"}, "'allow_private'"),
            ({"method": "GET"}, "one of POST, PUT, PATCH"),
            ({"timeout_ms": 0}, "timeout_ms is 0; use 1 to"),
            ({"retries": 11}, "retries is 11; use 0 to 10"),
            ({"max_response_bytes": -1}, "max_response_bytes is -1"),
            ({"content_type": "a\nb"}, "such as application/json"),
            ({"headers": {"X\n": "y"}}, "cannot be sent"),
            ({"headers": {"X": "y\r\nZ: 1"}}, "cannot be sent"),
            ({"headers": {"Host": "other"}}, "is set by Switchyard"),
            ({"headers": {"Webhook-Id": "1"}}, "is set by Switchyard"),
            ({"secret": "short"}, "has 5 bytes; use 16"),
            ({"secret": "whsec_not base64!"}, "is not base64"),
        ],
    )
    def test_what_is_wrong_is_said_when_it_is_configured(self, options: dict[str, object], problem: str) -> None:
        whole = {"url": "https://example.org/hook", **options} if options else {}
        with pytest.raises(ConfigurationError) as refused:
            check_handler("webhook", whole)
        assert problem in refused.value.message

    def test_private_addresses_are_for_the_installation_to_allow_as_well(self, settings) -> None:
        options = {"url": "http://127.0.0.1/", "allow_private": True}
        check_handler("webhook", options)
        settings.SWITCHYARD = replace(settings.SWITCHYARD, webhook_allow_private=False)
        for use in (check_handler, bind):
            with pytest.raises(ConfigurationError, match="SWITCHYARD_WEBHOOK_ALLOW_PRIVATE"):
                use("webhook", options)

    def test_secrets_are_no_part_of_what_is_shown(self) -> None:
        options = WebhookOptions("https://example.org/T0K3N", headers={"Authorization": "Bearer x"}, secret=SECRET)
        assert SECRET not in repr(options)
        assert "Bearer" not in repr(options)
        assert "T0K3N" not in repr(options)
        assert Webhook(options)


class TestInAQueue:
    """With the strategies and dead letters of a real queue around it."""

    @pytest.fixture
    def queues(self) -> Iterator[Queues]:
        with open_queues("in-memory") as opened:
            opened.create("readings", partitions=2)
            yield opened

    def consume(self, queues: Queues, webhook: Any) -> None:
        retried = ProcessingStrategy(ProcessingStrategyType.RETRY_FAILED, retries=2, pause_ms=1)
        subscription = queues.subscribe("readings", webhook, group="hooks", processing=retried, timeout_s=30)
        with subscription as running:
            running.drain()

    def test_what_passes_is_tried_again_and_arrives(self, queues: Queues, receiver: Receiver) -> None:
        receiver.next.extend([answer(503), answer(500)])
        queues.publish("readings", "device-1", b"21.5").result()
        self.consume(queues, hook(receiver))
        assert [request.headers["switchyard-attempt"] for request in receiver.requests] == ["1", "2", "3"]
        assert list(queues.dead_letters("readings")) == []

    def test_what_does_not_pass_becomes_a_letter(self, queues: Queues, receiver: Receiver) -> None:
        receiver.next.extend([answer(503)] * 3)
        queues.publish("readings", "device-1", b"21.5").result()
        self.consume(queues, hook(receiver))
        (letter,) = queues.dead_letters("readings")
        assert (letter.story.reason, letter.story.attempts) == ("retries_exhausted", 3)

    def test_what_is_refused_becomes_a_letter_at_once(self, queues: Queues, receiver: Receiver) -> None:
        receiver.next.append(answer(422, b"no such device"))
        queues.publish("readings", "device-1", b"21.5").result()
        queues.publish("readings", "device-1", b"22.0").result()
        self.consume(queues, hook(receiver))
        (letter,) = queues.dead_letters("readings")
        assert (letter.story.reason, letter.story.attempts) == ("given_up", 1)
        assert letter.story.exception_class == "workers.handlers.webhook.WebhookRefused"
        assert [request.body for request in receiver.requests] == [b"21.5", b"22.0"]
