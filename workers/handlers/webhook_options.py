"""What a queue may say about its webhook."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

from queueapi.config import config
from queuecore.consuming.handler_options import ADDRESS_OPTION, SECRET_OPTION
from queuecore.errors import ConfigurationError
from workers.handlers.addresses import is_name, is_open, literal_address
from workers.handlers.connection import HTTP_PORT, HTTPS_PORT, Target
from workers.handlers.signing import read_secret

MAX_RETRIES: Final = 10
MAX_TIMEOUT_MS: Final = 10 * 60 * 1000
MAX_RESPONSE_BYTES: Final = 10 * 1024 * 1024

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_OURS: Final = re.compile(
    r"host|connection|content-length|content-type|transfer-encoding|te|trailer|upgrade|expect|user-agent|"
    r"(webhook|switchyard|proxy)-.*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Where messages are sent, and how.

    url                 http:// or https://, without a password; its name is resolved for each connection, and only its
                        host is shown again
    method              how messages are sent
    content_type        what they are
    headers             more headers, such as Authorization; never shown again
    secret              signs each request: `whsec_` and base64, or any text of 16 bytes or more; never shown again
    timeout_ms          for one request, from looking its host up to the end of its answer; never longer than the
                        queue's own
    connect_timeout_ms  for looking up and connecting, within that
    retries             how often a request is repeated at once, before the message counts as failed
    max_response_bytes  how much of an answer is read
    allow_private       whether addresses may be reached that are not on the open network, such as this machine's; only
                        where the installation allows it too
    """

    url: str = field(metadata=ADDRESS_OPTION, repr=False)
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    content_type: str = "application/octet-stream"
    headers: Mapping[str, str] = field(default_factory=dict, metadata=SECRET_OPTION, repr=False)
    secret: str = field(default="", metadata=SECRET_OPTION, repr=False)
    timeout_ms: int = 10_000
    connect_timeout_ms: int = 3_000
    retries: int = 2
    max_response_bytes: int = 64 * 1024
    allow_private: bool = False

    def __post_init__(self) -> None:
        problems = [*_url_problems(self.url, self.allow_private), *_header_problems(self.headers)]
        if self.allow_private and not config().webhook_allow_private:
            problems.append(
                "allow_private is true, which this installation allows no queue; leave it out, or have whoever runs it "
                "set SWITCHYARD_WEBHOOK_ALLOW_PRIVATE"
            )
        if not _HEADER_VALUE.fullmatch(self.content_type) or not self.content_type:
            problems.append(f"content_type {self.content_type!r} cannot be sent; use one such as application/json")
        for name, least, most in _RANGES:
            if not least <= (value := getattr(self, name)) <= most:
                problems.append(f"{name} is {value}; use {least} to {most}")
        if problems:
            raise ConfigurationError("; ".join(problems))
        if self.secret:
            read_secret(self.secret)

    @property
    def key(self) -> bytes | None:
        """What requests are signed with; None: they are not."""
        return read_secret(self.secret) if self.secret else None

    @property
    def target(self) -> Target:
        parts = urlsplit(self.url)
        tls = parts.scheme == "https"
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        port = parts.port or (HTTPS_PORT if tls else HTTP_PORT)
        return Target(parts.hostname or "", port, path, tls, self.allow_private, self.connect_timeout_ms / 1000)


_RANGES: Final = (
    ("timeout_ms", 1, MAX_TIMEOUT_MS),
    ("connect_timeout_ms", 1, MAX_TIMEOUT_MS),
    ("retries", 0, MAX_RETRIES),
    ("max_response_bytes", 0, MAX_RESPONSE_BYTES),
)


def _url_problems(url: str, allow_private: bool) -> list[str]:
    """What is wrong with the address, without repeating it: it may hold a secret."""
    if not _PRINTABLE.fullmatch(url):
        return ["the url is empty or has spaces or other characters that must be written as %XX; write them so"]
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return [f"the url cannot be read: {error}; use one such as https://example.org/hook"]
    if parts.scheme not in ("http", "https") or not host:
        return ["the url must begin with http:// or https:// and a host"]
    if parts.username is not None or parts.password is not None or parts.fragment:
        return ["the url has a user, a password or a fragment (#…); give credentials in 'headers' instead"]
    if not is_name(host):
        return ["the url's host is no name that could be looked up: a part of it is empty or too long; mend it"]
    if (address := literal_address(host)) and not allow_private and not is_open(address):
        return [f"{address} is not on the open network; use another host, or allow it with 'allow_private'"]
    return []


def _header_problems(headers: Mapping[str, str]) -> list[str]:
    problems = [f"the header {name!r} is set by Switchyard; leave it out" for name in headers if _OURS.fullmatch(name)]
    return problems + [
        f"the header {name!r} cannot be sent; use ASCII letters, digits and '-' in its name, one line of ASCII as value"
        for name, value in headers.items()
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value)
    ]
