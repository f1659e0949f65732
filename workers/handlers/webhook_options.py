"""What a queue may say about its webhook."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from queueapi.config import config
from queueapi.outgoing.connection import Target
from queueapi.outgoing.signing import read_secret
from queueapi.outgoing.urls import header_problems, is_header_value, target_of, url_problems
from queuecore.consuming.handler_options import ADDRESS_OPTION, SECRET_OPTION
from queuecore.errors import ConfigurationError

MAX_RETRIES: Final = 10
MAX_TIMEOUT_MS: Final = 10 * 60 * 1000
MAX_RESPONSE_BYTES: Final = 10 * 1024 * 1024


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
        problems = [*url_problems(self.url, self.allow_private), *header_problems(self.headers)]
        if self.allow_private and not config().webhook_allow_private:
            problems.append(
                "allow_private is true, which this installation allows no queue; leave it out, or have whoever runs it "
                "set SWITCHYARD_WEBHOOK_ALLOW_PRIVATE"
            )
        if not is_header_value(self.content_type) or not self.content_type:
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
        return target_of(self.url, allow_private=self.allow_private, connect_timeout_s=self.connect_timeout_ms / 1000)


_RANGES: Final = (
    ("timeout_ms", 1, MAX_TIMEOUT_MS),
    ("connect_timeout_ms", 1, MAX_TIMEOUT_MS),
    ("retries", 0, MAX_RETRIES),
    ("max_response_bytes", 0, MAX_RESPONSE_BYTES),
)
